import type { Row } from "@countersign/idempotency/store";

/** Libraries give an integer of 64 bits as a number, a string or a bigint, by their settings. */
export function integerOf(value: unknown): number {
  const isNumeric = typeof value === "string" || typeof value === "number" || typeof value === "bigint";
  const integer = isNumeric && value !== "" ? Number(value) : Number.NaN;
  // Not -0, as a negative fraction is rounded up.
  if (Number.isSafeInteger(integer)) return integer + 0;
  throw new Error("the database library gave no integer where there is always one");
}

/** Libraries give a condition as 0 or 1, as a bigint or a boolean. */
export function isTrue(value: unknown): boolean {
  return Number(value) === 1;
}

export function singleRow(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined) throw new Error("the database library gave no row where there is always one");
  return row;
}
