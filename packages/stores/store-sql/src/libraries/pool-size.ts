import type { ConnectionPool } from "@countersign/idempotency";

/** The pool, if its number of connections is known: `size` as the library or its driver has it. */
export function poolOfSize(pool: unknown, size: unknown): ConnectionPool | undefined {
  const isKnown = typeof size === "number" && Number.isSafeInteger(size) && size > 0;
  return isKnown && typeof pool === "object" && pool !== null ? { of: pool, size } : undefined;
}

/** A pool of pg, or one of mysql2, with callbacks or promises. */
export function driverPool(pool: unknown): ConnectionPool | undefined {
  const inner: unknown = Reflect.get(Object(pool), "pool");
  const sizes = [
    memberOf(memberOf(pool, "options"), "max"),
    memberOf(memberOf(pool, "config"), "connectionLimit"),
    memberOf(memberOf(inner, "config"), "connectionLimit"),
  ];
  return poolOfSize(
    pool,
    sizes.find((size) => size !== undefined),
  );
}

function memberOf(value: unknown, name: string): unknown {
  return Reflect.get(Object(value), name);
}
