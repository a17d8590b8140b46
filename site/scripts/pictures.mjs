// The drawings: DOT of pictures/, or made of a table, laid out by Graphviz (WebAssembly, no browser).
import { read } from "./source.mjs";

/** The names of all drawings. */
export const drawingNames = [
  "way-of-a-payout",
  "one-transaction",
  "which-mode",
  "states-of-a-key",
  "fault-table",
];

// Colours are classes, so that a drawing follows the page: inside of a page by the theme's style sheet, alone by this one.
const alone = `<style>
  text { fill: #1b1b1f; font-family: system-ui, sans-serif }
  path, polygon, ellipse, polyline { stroke: #3c3c43; fill: none }
  .edge polygon { fill: #3c3c43 }
  .graph > polygon { fill: none; stroke: none }
  .good path, .good polygon, .good ellipse { stroke: #18794e; fill: #e3f4ea }
  .doubt path, .doubt polygon, .doubt ellipse { stroke: #915930; fill: #fcf4dc }
  .bad path, .bad polygon, .bad ellipse { stroke: #b8272c; fill: #fde4e8 }
  .calm path, .calm polygon, .calm ellipse { stroke: #3c3c43; fill: #f6f6f7 }
  .sign-good { fill: #18794e }
  .sign-doubt { fill: #915930 }
  @media (prefers-color-scheme: dark) {
    .sign-good { fill: #3dd68c }
    .sign-doubt { fill: #f9b44e }
    text { fill: #dfdfd6 }
    path, polygon, ellipse, polyline { stroke: #a8a8b3 }
    .edge polygon { fill: #a8a8b3 }
    .good path, .good polygon, .good ellipse { stroke: #3dd68c; fill: #173828 }
    .doubt path, .doubt polygon, .doubt ellipse { stroke: #f9b44e; fill: #3b2f17 }
    .bad path, .bad polygon, .bad ellipse { stroke: #f66f81; fill: #421c23 }
    .calm path, .calm polygon, .calm ellipse { stroke: #a8a8b3; fill: #26262b }
  }
</style>`;

// Graphviz lays out by the widths of Helvetica; the fonts of many systems are wider.
const room = "&#160;".repeat(4);

// Graphviz gives no class to a piece of text: a colour that is used for nothing else stands for it.
const marks = {
  good: { sign: "●", colour: "#00ff01" },
  doubt: { sign: "◐", colour: "#00ff02" },
  none: { sign: "–", colour: "#00ff03" },
};

/** The table of test/faults as a drawing: a row for each fault, a column for each engine, a mark for what was shown there. */
export function faultTable() {
  const { engines, rows } = faultRows();
  const cell = (text, attributes = "") => `<td ${attributes}>${text}</td>`;
  const head = ["Fault", ...engines].map((text) => cell(`<b>${escape(text)}</b>${room}`)).join("");
  const body = rows.map(({ name, cells }) => {
    const shown = cells.map((kind) => {
      const { colour, sign } = marks[kind] ?? {};
      return cell(sign === undefined ? "" : `<font color="${colour}">${sign}</font>`);
    });
    return `<tr>${cell(`${escape(name)}${room}`, 'align="left"')}${shown.join("")}</tr>`;
  });
  const table = `<table border="0" cellborder="1" cellspacing="0" cellpadding="7"><tr>${head}</tr>${body.join("")}</table>`;
  return `digraph { margin=0; pad=0.1; node [shape=plain fontname="Helvetica" fontsize=13]; t [label=<${table}>] }`;
}

/**
 * The rows of both fault tables, with a cell for each engine: shown as it says, shown with another promise than the row's own, not to
 * be had on that engine, or undefined where a table has no column for it.
 */
export function faultRows() {
  const lines = read("test/faults/README.md").split("\n");
  const cells = (line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((text) => text.trim());
  const heads = lines.filter((line) => line.startsWith("| row")).map((line) => cells(line).slice(1));
  const engines = [...new Set(heads.flat())];
  const rows = [];
  let columns = [];
  for (const line of lines) {
    if (line.startsWith("| row")) columns = heads.shift();
    if (!/^\| \d/.test(line)) continue;
    const [name, ...texts] = cells(line);
    const kinds = new Map(columns.map((engine, index) => [engine, kindOf(texts[index])]));
    rows.push({ name, cells: engines.map((engine) => kinds.get(engine)) });
  }
  return { engines, rows };
}

function kindOf(text) {
  if (/^no[:,]/.test(text)) return "none";
  // What Redis and the memory store promise there hangs on the payout's own database, or on `hold`.
  return /own database|`hold`|rail that knows/.test(text) ? "doubt" : "good";
}

const escape = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("`", "");

/** What a drawing is made of. */
export function drawingSource(name) {
  return name === "fault-table" ? faultTable() : read("site", "pictures", `${name}.dot`);
}

/** Each drawing by name: `inline` for a page, `file` to be looked at alone. */
export async function drawPictures(names) {
  // Of site/package.json: whoever reads this file without drawing needs nothing of it.
  const { instance } = await import("@viz-js/viz");
  const viz = await instance();
  const drawn = names.map((name) => {
    const { output, errors } = viz.render(drawingSource(name), { format: "svg" });
    if (output === undefined || errors.some(({ level }) => level === "error"))
      throw new Error(`${name}: ${JSON.stringify(errors)}`);
    return [name, plain(output)];
  });
  return Object.fromEntries(drawn);
}

function plain(svg) {
  const body = svg
    .slice(svg.indexOf("<svg"))
    .replaceAll(/<!--[\s\S]*?-->\n?/g, "")
    .replaceAll(/<title>[\s\S]*?<\/title>\n?/g, "")
    .replaceAll(/ fill="#00ff0([123])"/g, (_all, digit) => ` class="sign-${Object.keys(marks)[digit - 1]}"`)
    .replaceAll(/ (fill|stroke)="[^"]*"/g, "")
    .replaceAll(/ font-family="[^"]*"/g, "")
    .replaceAll(/ id="[^"]*"/g, "")
    .replaceAll("\n", "")
    .trim();
  return { inline: body, file: body.replace(/(<svg[^>]*>)/, `$1${alone}`) };
}
