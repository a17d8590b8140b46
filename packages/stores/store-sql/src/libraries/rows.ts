import type { Row } from "@countersign/idempotency/store";

/** Throws a TypeError unless `value` has `query` and a second function that tells it from its like. */
export function assertCanQuery(caller: string, value: unknown, sign: string, expected: string): void {
  if (typeof value === "object" && value !== null) {
    const isFit = [sign, "query"].every((name) => typeof Reflect.get(value, name) === "function");
    if (isFit) return;
  }
  throw new TypeError(`${caller}: needs ${expected}`);
}

/** The rows of a result `{ rows }`. Throws a TypeError on another. */
export function rowsOf(library: string, result: unknown): readonly Row[] {
  const rows: unknown =
    typeof result === "object" && result !== null ? Reflect.get(result, "rows") : undefined;
  return rowList(library, rows);
}

/** Throws a TypeError unless the library has returned a list of objects. */
export function rowList(library: string, rows: unknown): readonly Row[] {
  if (Array.isArray(rows) && rows.every((row) => typeof row === "object" && row !== null)) return rows;
  throw new TypeError(`${library} returned no list of rows`);
}

/** How many rows a statement has changed, by the number that the library gives. Throws a TypeError on none: 0 would mean something. */
export function changedRows(library: string, count: unknown): number {
  if (typeof count === "number" || typeof count === "bigint") return Number(count);
  throw new TypeError(`${library} returned no number of changed rows`);
}

/**
 * The same by the server's answer to a statement that was sent by itself. Throws where the answer says that a transaction is open: what the
 * statement has written can still be rolled back.
 */
export function changedAlone(library: string, answer: unknown): number {
  const changed = changedRows(library, Reflect.get(Object(answer), "affectedRows"));
  const flags: unknown = Reflect.get(Object(answer), "serverStatus");
  if (typeof flags !== "number") throw new TypeError(`${library} returned no status of the session`);
  // oxlint-disable-next-line no-bitwise -- as the protocol has it
  if (changed > 0 && (flags & inTransaction) !== 0) {
    throw new Error(
      `${library}: the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing it`,
    );
  }
  return changed;
}

/** In the flags of MySQL's answers. */
export const inTransaction = 1;

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
