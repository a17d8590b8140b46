import type { Row } from "@countersign/idempotency/store";
import { rowList } from "./rows.ts";

/** Several statements in one: MariaDB takes them without an option of the driver, and stops at the first that fails. */
export function compound(text: string): string {
  return `BEGIN NOT ATOMIC\n${text};\nEND`;
}

/** The rows of its statements: the driver gives a list of them for each, and a header. */
export function compoundRows(library: string, result: unknown): readonly Row[] {
  const all: readonly unknown[] = Array.isArray(result) ? result : [];
  return rowList(
    library,
    all.flatMap((each) => (Array.isArray(each) ? each : [])),
  );
}
