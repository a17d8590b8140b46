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
  const lines = [all[0], "", ...all.slice(first, results[rows - 1] + 1), "…", all.at(-1)];
  const columns = Math.max(...lines.map(({ length }) => length));
  const drawn = lines.map(
    (line, row) =>
      `<text x="${margin}" y="${margin + (row + 1) * height - 5}" style="fill:${colourOf(line)};white-space:pre" xml:space="preserve">${escape(line)}</text>`,
  );
  const size = { width: Math.ceil(columns * width + 2 * margin), height: lines.length * height + 2 * margin };
  const box = `viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}"`;
  const font = `font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14"`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" ${box} class="terminal"><rect width="100%" height="100%" rx="8" style="fill:#17171b"/><g ${font}>${drawn.join("")}</g></svg>`;
  return { inline: svg, file: svg };
}

function colourOf(line) {
  if (line.startsWith("$") || /^[-\s]+$/.test(line)) return "#8fa3b8";
  if (line.startsWith("NO ")) return "#f66f81";
  if (line.startsWith("ok ")) return "#7fe0a8";
  return "#eaeaea";
}

// Columns stay columns where whoever shows it makes one space of several.
function escape(text) {
  return text
    .replaceAll(" ", "\u00a0")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
