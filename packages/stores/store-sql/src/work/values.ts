/** Libraries give an integer of 64 bits as a number, a string or a bigint, by their settings. */
export function integerOf(value: unknown): number {
  const isNumeric = typeof value === "string" || typeof value === "number" || typeof value === "bigint";
  const integer = isNumeric && value !== "" ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(integer)) return integer;
  throw new Error("the database library gave no integer where there is always one");
}
