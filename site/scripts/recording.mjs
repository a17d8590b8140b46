// A recording (asciinema, version 2) as a drawing without motion: its command, its first rows of results, and its sum.
const width = 8.4;
const height = 19;
const margin = 16;

export function recordingSvg(cast, { rows }) {
  const [, ...events] = cast
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const all = events
    .map(([, , text]) => text)
    .join("")
    .trimEnd()
    .split("\r\n");
  const results = [...all.keys()].filter((index) => /^(?:ok|NO) /.test(all[index]));
  // With the title above the first of them.
  const first = results[0] - 1;
  const lines = [
    all[0].replace(" -- --once", ""),
    "",
    ...all.slice(first, results[rows - 1] + 1),
    "…",
    all.at(-1),
  ];
  const columns = Math.max(...lines.map(({ length }) => length));
  const drawn = lines.map((line, row) => rowOf(line, margin + (row + 1) * height - 5));
  const size = { width: Math.ceil(columns * width + 2 * margin), height: lines.length * height + 2 * margin };
  const box = `viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}"`;
  const font = `font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14"`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" ${box} class="terminal"><rect width="100%" height="100%" rx="8" style="fill:#17171b;stroke:#3c3c43"/><g ${font}>${drawn.join("")}</g></svg>`;
  return { inline: svg, file: svg };
}

const verdicts = { ok: "#7fe0a8", NO: "#f66f81" };

// As the program colours it: the verdict alone, and titles dim.
function rowOf(line, y) {
  const [, verdict = "", rest] = /^(ok|NO|\d+ of \d+ as expected)?(.*)$/.exec(line);
  const isDim = verdict === "" && !line.startsWith("$");
  const said = `<tspan style="fill:${verdicts[verdict] ?? verdicts.ok}">${escape(verdict)}</tspan>${escape(rest)}`;
  return `<text x="${margin}" y="${y}" style="fill:${isDim ? "#8fa3b8" : "#eaeaea"};white-space:pre" xml:space="preserve">${said}</text>`;
}

// Columns stay columns where whoever shows it makes one space of several.
function escape(text) {
  return text
    .replaceAll(" ", "\u00a0")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
