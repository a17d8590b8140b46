import type { CaseResult } from "./cases.ts";

/** The results as an aligned table with a header line and a closing count. */
export function formatTable(results: readonly CaseResult[]): string {
  const rows = [
    ["case", "expected", "got", "ok"],
    ...results.map(({ name, expected, got, ok }) => [name, expected, got, ok ? "yes" : "NO"]),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  const rule = widths.map((width) => "-".repeat(width)).join("  ");
  const asExpected = results.filter(({ ok }) => ok).length;
  return [lines[0], rule, ...lines.slice(1), "", `${asExpected} of ${results.length} as expected`].join("\n");
}
