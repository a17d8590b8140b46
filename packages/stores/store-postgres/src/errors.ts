export type PostgresStoreCode = "transaction-not-begun";

/** SQLSTATE: the server ended a session whose transaction stood idle. */
export const idleSession = "25P03";

const lockTimeout = "55P03";

const grants =
  "GRANT USAGE on the schema and SELECT, INSERT, UPDATE, DELETE on the tables to the role of the pool";

// The remedy by SQLSTATE. Other errors say enough themselves.
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

export const inTransaction =
  "the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing a client";

/** SQLSTATE: the server cannot read the text, or takes one statement and got several. */
export const syntaxError = "42601";

/** Adds the remedy to an error, with the original as cause. Returns other errors as they are. */
export function explained(caller: string, place: string, error: unknown): unknown {
  const code = sqlStateOf(error);
  const remedy = code === undefined ? undefined : remedies[code];
  return remedy === undefined ? error : new Error(`${caller}: ${remedy(place)}`, { cause: error });
}

/** True when nothing of the statement happened, so that it can be sent again. */
export function isSerializationFailure(error: unknown): boolean {
  return sqlStateOf(error) === "40001";
}

export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === lockTimeout;
}

export function sqlStateOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
