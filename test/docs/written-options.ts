/** The defaults of options by name, as a page writes them; undefined where a call shows the name alone. */
export type WrittenDefaults = Readonly<Record<string, string | undefined>>;

/** The tables of a page whose first column is `name` or `option`, and that have one `default`. */
export function optionTables(page: string): readonly WrittenDefaults[] {
  const tables = [...page.matchAll(/(?:^\|.*\|$\n?)+/gm)].map(([text]) =>
    text.trim().split("\n").map(cellsOf),
  );
  return tables.flatMap(([header = [], _line, ...rows]) => {
    const column = header.findIndex((cell) => cell.toLowerCase() === "default");
    if (column < 0 || !/^(?:name|option)$/i.test(header[0] ?? "")) return [];
    return [Object.fromEntries(rows.flatMap((cells) => defaultsOf(cells[0] ?? "", cells[column] ?? "")))];
  });
}

/** The options of the fullest call of `name` that a page shows between code marks: `memoryNonceStore({ max: 100_000, now })`. */
export function optionsOfCall(page: string, name: string): WrittenDefaults {
  const call = new RegExp(`\`${name}\\((?:[a-z][A-Za-z]*, )*\\{ (.*?) \\}(?:, [a-z]+)?\\)\``, "g");
  const calls = [...page.matchAll(call)].map(([, options = ""]) => options.split(", "));
  const fullest = Math.max(...calls.map((options) => options.length));
  const options = calls.find(({ length }) => length === fullest) ?? [];
  return Object.fromEntries(
    options.map((part) => {
      const [option = "", written] = part.split(": ");
      return [option, written === undefined ? undefined : plain(written)];
    }),
  );
}

/** A default without what is of the page alone: code marks, and marks between thousands. */
export function plain(written: string): string {
  return written.replaceAll("`", "").replaceAll(/(?<=\d)[,_](?=\d{3})/g, "");
}

// A row of several options has a default for each, or one for all of them.
function defaultsOf(names: string, written: string): readonly [name: string, byDefault: string][] {
  const options = [...names.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
  const each = written.split(", ");
  return options.map((name, index) => {
    const own = options.length > 1 && each.length === options.length ? each[index] : written;
    return [name, plain(own ?? "")];
  });
}

function cellsOf(row: string): readonly string[] {
  return row
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
}
