/** The shape of what a store's `completeIn` takes. */
export interface TransactionShape {
  /** Such as "the client on which your transaction is open". */
  readonly needs: string;
  readonly has: readonly string[];
  /** Members of frequent mistakes, with their names: `{ getConnection: "a pool" }`. */
  readonly lacks: Readonly<Record<string, string>>;
  readonly page: string;
}

/** Throws a TypeError, which guards do not take for a store's failure, unless `tx` has the shape. For `completeIn`, before it sends. */
export function assertTransaction(
  store: string,
  tx: unknown,
  { needs, has, lacks, page }: TransactionShape,
): void {
  const fault = isObject(tx) ? (otherThing(tx, lacks) ?? missingFunction(tx, has)) : `got ${kindOf(tx)}`;
  if (fault === undefined) return;
  throw new TypeError(`${store}: completeIn needs ${needs}; ${fault}. See ${page}`);
}

function otherThing(tx: object, lacks: TransactionShape["lacks"]): string | undefined {
  const member = Object.keys(lacks).find((name) => name in tx);
  return member === undefined ? undefined : `got ${lacks[member]}`;
}

function missingFunction(tx: object, has: TransactionShape["has"]): string | undefined {
  const missing = has.find((name) => typeof Reflect.get(tx, name) !== "function");
  return missing === undefined ? undefined : `got an object that has no function ${missing}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function kindOf(value: unknown): string {
  return value === undefined || value === null ? String(value) : `a ${typeof value}`;
}
