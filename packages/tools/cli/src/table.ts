/** A column of a table for people. */
export interface Column {
  readonly title: string;
  /** Never shortened and never broken: somebody will copy it. */
  readonly whole?: true;
}

/** The lines of a table, all in the same columns. */
export interface Table {
  /** Empty where the terminal is too narrow for columns. */
  readonly head: string;
  readonly row: (cells: readonly string[]) => string;
}

const gap = 2;
const leastWidth = 6;

/**
 * Chooses the columns for rows whose texts are `printable`. In a terminal of `terminalColumns` texts are shortened where they do not
 * fit; where that is not enough, each row becomes a block. Elsewhere nothing is shortened.
 */
export function tableFor(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  terminalColumns: number | undefined,
): Table {
  const natural = columns.map(({ title }, at) =>
    Math.max(textWidth(title), ...rows.map((cells) => textWidth(cells[at] ?? ""))),
  );
  if (terminalColumns === undefined) return inColumns(columns, natural, false);
  const fitting = narrowed(columns, natural, terminalColumns);
  return fitting === undefined ? inBlocks(columns, terminalColumns) : inColumns(columns, fitting, true);
}

/** Takes from the widest column that may be shortened until the line fits; undefined when it cannot. */
function narrowed(
  columns: readonly Column[],
  natural: readonly number[],
  terminalColumns: number,
): number[] | undefined {
  const widths = [...natural];
  const least = columns.map(({ title, whole }, at) =>
    whole === true ? (natural[at] ?? 0) : Math.min(natural[at] ?? 0, Math.max(leastWidth, textWidth(title))),
  );
  for (;;) {
    const excess = widths.reduce((sum, width) => sum + width + gap, -gap) - terminalColumns;
    if (excess <= 0) return widths;
    const spare = widths.map((width, at) => width - (least[at] ?? 0));
    const widest = widths.reduce(
      (found, width, at) => ((spare[at] ?? 0) > 0 && width > (widths[found] ?? 0) ? at : found),
      -1,
    );
    if (widest === -1) return undefined;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

function inColumns(columns: readonly Column[], widths: readonly number[], shortens: boolean): Table {
  const row = (cells: readonly string[]): string => {
    const padded = columns.map(({ whole }, at) => {
      const width = widths[at] ?? 0;
      const cell = cells[at] ?? "";
      return padEnd(shortens && whole !== true ? shorten(cell, width) : cell, width);
    });
    return `${padded.join(" ".repeat(gap)).trimEnd()}\n`;
  };
  return { head: row(columns.map(({ title }) => title)), row };
}

function inBlocks(columns: readonly Column[], terminalColumns: number): Table {
  const titleWidth = Math.max(...columns.map(({ title }) => textWidth(title)));
  return {
    head: "",
    row: (cells) =>
      columns
        .map(({ title, whole }, at) => {
          const cell = cells[at] ?? "";
          const label = at === 0 ? "" : `  ${padEnd(title, titleWidth)}  `;
          return `${label}${whole === true ? cell : shorten(cell, terminalColumns - textWidth(label))}\n`;
        })
        .join(""),
  };
}

/** The text within `width` columns of a terminal; an ellipsis tells that something is missing. */
export function shorten(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let kept = "";
  for (const character of text) {
    if (textWidth(kept + character) > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** The text in lines of at most `width` columns, broken between words; a longer word stays whole. */
export function wrap(text: string, width: number): string[] {
  return filled(text.split(" "), width);
}

/** The words in lines of at most `width` columns; a longer word stays whole. */
export function filled(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || textWidth(last) + 1 + textWidth(word) > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** How many columns of a terminal a text takes: East Asian characters and pictures two, marks upon others none. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += wide.test(character) ? 2 : /\p{M}/u.test(character) ? 0 : 1;
  return width;
}

function padEnd(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}
