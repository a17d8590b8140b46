interface Fit {
  /** How many of the first columns are never shortened: somebody will copy them. */
  readonly whole: number;
  /** Undefined for a pipe or file, whose lines may be of any length. */
  readonly columns: number | undefined;
  /** `at` is undefined for the titles. */
  readonly paint?: (line: string, at?: number) => string;
}

interface Column {
  readonly least: number;
  width: number;
}

const gap = "  ";
const leastWidth = 6;

/** Sets `printable` texts in columns under titles. A narrow terminal shortens texts, or turns each row into a block without titles. */
export function tableText(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  { whole, columns: room = Infinity, paint = (line) => line }: Fit,
): string {
  const columns = titles.map((title, at): Column => {
    const width = Math.max(textWidth(title), ...rows.map((cells) => textWidth(cells[at] ?? "")));
    const least = at < whole ? width : Math.min(width, Math.max(leastWidth, textWidth(title)));
    return { least, width };
  });
  const line = (cells: readonly string[]): string =>
    columns
      .map(({ width }, at) => padEnd(shorten(cells[at] ?? "", width), width))
      .join(gap)
      .trimEnd();
  const titleWidth = Math.max(...titles.map(textWidth));
  const block = (cells: readonly string[]): string => {
    const lines = cells.map((cell, at) => {
      const label = at === 0 ? "" : `${gap}${padEnd(titles[at] ?? "", titleWidth)}${gap}`;
      return label + (at < whole ? cell : shorten(cell, Math.max(leastWidth, room - label.length)));
    });
    return lines.join("\n");
  };
  const fits = narrow(columns, room);
  const lines = rows.map((cells, at) => `${paint((fits ? line : block)(cells), at)}\n`);
  return (fits ? `${paint(line(titles))}\n` : "") + lines.join("");
}

/** Shortens the widest column that allows it until a line fits; false if none does. */
function narrow(columns: readonly Column[], room: number): boolean {
  const needed = columns.reduce((sum, { width }) => sum + width + gap.length, -gap.length);
  for (let excess = needed - room; excess > 0; excess -= 1) {
    const spare = columns.filter(({ width, least }) => width > least);
    const widest = Math.max(...spare.map(({ width }) => width));
    const column = spare.find(({ width }) => width === widest);
    if (column === undefined) return false;
    column.width -= 1;
  }
  return true;
}

function shorten(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let kept = "";
  for (const character of text) {
    if (textWidth(kept + character) > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

// East Asian characters and pictures take two columns, combining marks none.
function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += wide.test(character) ? 2 : /\p{M}/u.test(character) ? 0 : 1;
  return width;
}

function padEnd(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}
