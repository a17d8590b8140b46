// The recording of the demo as a picture for the README: the first rows of each part, in the colours of whoever looks.
const shownOfPart = 4;
const width = 8.4;
const height = 20;
const margin = 16;

/** An SVG of the output: a part begins with a title, after an empty line. */
export function stillSvg(cast) {
  const [, ...events] = cast
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const [command, ...parts] = events
    .map(([, , text]) => text)
    .join("")
    .trimEnd()
    .replace(" -- --once", "")
    .replaceAll("\r\n", "\n")
    .split("\n\n");
  const lines = [command, ...parts.flatMap((part) => ["", ...shortened(part.split("\n"))])];
  const columns = Math.max(...lines.map((line) => line.length));
  const size = [columns * width + 2 * margin, lines.length * height + 2 * margin].map(Math.ceil);
  const rows = lines.map((line, index) => rowOf(line, margin + (index + 1) * height - 5));
  const box = `viewBox="0 0 ${size.join(" ")}" width="${size[0]}" height="${size[1]}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${box} role="img"><style>${style}</style><rect width="100%" height="100%" rx="8"/>${rows.join("")}</svg>\n`;
}

function shortened([title, ...rows]) {
  const more = rows.length - shownOfPart;
  return more <= 1 ? [title, ...rows] : [title, ...rows.slice(0, shownOfPart), `    … ${more} more`];
}

function rowOf(line, y) {
  const [, ok, rest] = /^(ok|\d+ of \d+ as expected)?(.*)$/.exec(line);
  const kind = ok === undefined && !line.startsWith("$") ? "dim" : "text";
  const good = ok === undefined ? "" : `<tspan class="good">${escape(ok)}</tspan>`;
  return `<text x="${margin}" y="${y}" class="${kind}" xml:space="preserve">${good}${escape(rest)}</text>`;
}

// Columns stay columns where whoever shows it makes one space of several.
const escape = (text) => text.replaceAll(" ", "\u00a0").replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const style = `
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }
  rect { fill: #f6f8fa; stroke: #d1d9e0 }
  .text { fill: #1f2328 } .dim { fill: #59636e } .good { fill: #116329 }
  @media (prefers-color-scheme: dark) {
    rect { fill: #151b23; stroke: #3d444d }
    .text { fill: #e6edf3 } .dim { fill: #9198a1 } .good { fill: #3fb950 }
  }`;
