// A recording (asciinema, version 2) as a drawing: each piece of output appears when it did, but nobody waits longer than this.
const longestPause = 1.5;
const width = 8.4;
const height = 19;
const margin = 16;

export function recordingSvg(cast) {
  const [, ...events] = cast
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  let shownAt = 0;
  let before = 0;
  let row = 0;
  let columns = 0;
  const pieces = events.map(([time, , text]) => {
    shownAt += Math.min(time - before, longestPause);
    before = time;
    const lines = text.replace(/\r\n$/, "").split("\r\n");
    const drawn = lines.map((line) => {
      row += 1;
      columns = Math.max(columns, line.length);
      return `<text x="${margin}" y="${margin + row * height - 5}" style="fill:${colourOf(line)};white-space:pre" xml:space="preserve">${escape(line)}</text>`;
    });
    const style = shownAt === 0 ? "" : ` class="appears" style="animation-delay:${shownAt.toFixed(2)}s"`;
    return `<g${style}>${drawn.join("")}</g>`;
  });
  const size = { width: Math.ceil(columns * width + 2 * margin), height: row * height + 2 * margin };
  const box = `viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}"`;
  const font = `font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14"`;
  const body = `<rect width="100%" height="100%" rx="8" style="fill:#17171b"/><g ${font}>${pieces.join("")}</g></svg>`;
  const open = `<svg xmlns="http://www.w3.org/2000/svg" ${box} class="terminal">`;
  return { inline: `${open}${body}`, file: `${open}<style>${animation}</style>${body}` };
}

const animation = `@media (prefers-reduced-motion: no-preference) {
  .appears { animation: appear 0.2s both }
  @keyframes appear { from { opacity: 0 } to { opacity: 1 } }
}`;

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
