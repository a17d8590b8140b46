// A CPU profile of V8 as a flame graph: each box a function, as wide as its share of the busy time, callers below what they called.

const width = 1200;
const rowHeight = 17;
const header = 52;
const smallestShare = 0.004;

const kinds = [
  { name: "our packages", fill: "#f2b84b", has: ({ url }) => /\/packages\/[a-z0-9-]+\/dist\//.test(url) },
  { name: "other packages", fill: "#8fb8de", has: ({ url }) => url.includes("/node_modules/") },
  {
    name: "garbage collection",
    fill: "#d98b8b",
    has: ({ functionName }) => functionName === "(garbage collector)",
  },
  { name: "Node, V8, native code", fill: "#c9cdd2", has: () => true },
];

/** The text of an SVG. What the process waited, and what the benchmark does in it, is left out. */
export function drawFlames(profile, title) {
  const root = mergedTree(profile);
  const boxes = [];
  place(root, 0, 0, width, boxes);
  const depth = Math.max(...boxes.map((box) => box.depth)) + 1;
  const height = header + depth * rowHeight + 8;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="11">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="8" y="18" font-size="14" fill="#1c1f23">${escaped(title)}</text>`,
    ...kinds.map(
      ({ name, fill }, index) =>
        `<rect x="${8 + index * 190}" y="28" width="12" height="12" fill="${fill}"/><text x="${26 + index * 190}" y="38" fill="#1c1f23">${name}</text>`,
    ),
    ...boxes.map((box) => drawBox(box, height)),
    "</svg>\n",
  ].join("\n");
}

/** Frames of one function below one caller are one node, whatever the line. */
function mergedTree({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const selfOf = new Map();
  samples.forEach((id, index) => selfOf.set(id, (selfOf.get(id) ?? 0) + timeDeltas[index]));
  const merge = (ids, label, frame) => {
    const groups = new Map();
    let time = 0;
    for (const id of ids) {
      time += selfOf.get(id) ?? 0;
      for (const child of byId.get(id).children ?? []) {
        const { callFrame } = byId.get(child);
        if (isLeftOut(callFrame)) continue;
        const key = `${callFrame.functionName} ${callFrame.url}`;
        groups.set(key, [...(groups.get(key) ?? []), child]);
      }
    }
    const children = [...groups.values()].map((group) => {
      const { callFrame } = byId.get(group[0]);
      return merge(group, callFrame.functionName || "(anonymous)", callFrame);
    });
    return { label, frame, children, time: time + children.reduce((sum, child) => sum + child.time, 0) };
  };
  const root = nodes.find(({ callFrame }) => callFrame.functionName === "(root)");
  return merge([root.id], "busy time", { functionName: "", url: "" });
}

function place(node, depth, left, span, boxes) {
  boxes.push({ node, depth, left, span });
  let at = left;
  for (const child of node.children.toSorted((a, b) => b.time - a.time)) {
    const childSpan = (span * child.time) / node.time;
    if (childSpan >= width * smallestShare) place(child, depth + 1, at, childSpan, boxes);
    at += childSpan;
  }
}

function drawBox({ node: { label, frame }, depth, left, span }, height) {
  const y = height - 8 - (depth + 1) * rowHeight;
  const share = `${((span / width) * 100).toFixed(1)} %`;
  const letters = Math.floor((span - 6) / 6.2);
  const text = label.length <= letters ? label : letters > 4 ? `${label.slice(0, letters - 1)}…` : "";
  const { fill } = kinds.find(({ has }) => has(frame));
  const rect = `<rect x="${left.toFixed(1)}" y="${y}" width="${Math.max(span - 0.6, 0.4).toFixed(1)}" height="${rowHeight - 1}" fill="${fill}"><title>${escaped(`${label} ${fileOf(frame)} ${share}`)}</title></rect>`;
  return text === ""
    ? rect
    : `${rect}<text x="${(left + 3).toFixed(1)}" y="${y + 12}" fill="#1c1f23">${escaped(text)}</text>`;
}

// Without the folders of this machine.
function fileOf({ url }) {
  return /\/(?:packages|node_modules)\/(.+)$/.exec(url)?.[1] ?? url.replace(/^file:.*\//, "");
}

function escaped(text) {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

function isLeftOut({ functionName, url }) {
  return functionName === "(idle)" || functionName === "(program)" || url.endsWith("/bench/server.mjs");
}
