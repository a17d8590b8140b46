/** The codes of the refusals that this package makes. */
export type PostgresStoreCode = "transaction-not-begun";

/** The SQLSTATE of a session that the server ends because its transaction stands idle. */
export const idleSession = "25P03";

// The SQLSTATE of a lock that did not come in time.
const lockTimeout = "55P03";

const grants =
  "GRANT USAGE on the schema and SELECT, INSERT, UPDATE, DELETE on the tables to the role of the pool";

// By SQLSTATE: what an operator can do about it. Everything else says enough itself.
const remedies: Readonly<Record<string, (place: string) => string>> = {
  "42P01": (place) => `the tables ${place} are missing; create them with: countersign migrate`,
  "42703": (place) =>
    `the tables ${place} are of another release; bring them up to date with: countersign migrate`,
  "42501": (place) => `the role may not use the tables ${place}; ${grants}`,
  "25006": (place) => `the tables ${place} cannot be written here; connect the pool to the primary server`,
  [idleSession]: () =>
    "the server has ended the session and rolled the transaction back, because no statement came for as long as " +
    "idle_in_transaction_session_timeout allows (option idleTimeoutMs)",
  [lockTimeout]: (place) =>
    `a row of the tables ${place} stayed locked by another transaction; look for transactions that are left open`,
};

/** What is wrong with a pool on whose connections the stores find somebody's transaction. */
export const inTransaction =
  "the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing a client";

/** The SQLSTATE of text that the server cannot read, and of several statements where it takes one. */
export const syntaxError = "42601";

/** The error with its remedy, and the original as cause; the original itself where there is none. */
export function explained(caller: string, place: string, error: unknown): unknown {
  const code = sqlStateOf(error);
  const remedy = code === undefined ? undefined : remedies[code];
  return remedy === undefined ? error : new Error(`${caller}: ${remedy(place)}`, { cause: error });
}

/** Whether a statement in a transaction of its own may simply be sent again: nothing of it happened. */
export function isSerializationFailure(error: unknown): boolean {
  return sqlStateOf(error) === "40001";
}

/** Whether the statement has waited for a row in vain. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === lockTimeout;
}

/** The five letters of the server's error; undefined when it is none of the server's. */
export function sqlStateOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
