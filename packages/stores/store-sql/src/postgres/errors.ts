import { wrappedErrors } from "@countersign/idempotency/store";
import type { TableNames } from "./table-names.ts";

/** SQLSTATE: the server ended a session whose transaction stood idle. */
const idleSession = "25P03";

const lockTimeout = "55P03";

/** SQLSTATE. */
export const divisionByZero = "22012";

const notPrepared = (): string =>
  "the server lost or has already the connection's prepared statements: a pooler shares it, or DISCARD ran; leave out the option " +
  "prepare, or let PgBouncer (1.21 or later) keep them: max_prepared_statements";

const grants =
  "GRANT USAGE on the schema and SELECT, INSERT, UPDATE, DELETE on the tables to the role of the pool";

type TablePlace = Pick<TableNames, "place" | "migrate">;

// The remedy by SQLSTATE. Other errors say enough themselves.
const remedies: Readonly<Record<string, (names: TablePlace) => string>> = {
  "42P01": ({ place, migrate }) => `the tables ${place} are missing; create them with: ${migrate}`,
  "42703": ({ place, migrate }) =>
    `the tables ${place} are of another release; bring them up to date with: ${migrate}`,
  "42501": ({ place }) => `the role may not use the tables ${place}; ${grants}`,
  "26000": notPrepared,
  "42P05": notPrepared,
  "25006": ({ place }) =>
    `the tables ${place} cannot be written here; connect the pool to the primary server`,
  [idleSession]: () =>
    "the server has ended the session and rolled the transaction back, because no statement came for as long as " +
    "idle_in_transaction_session_timeout allows (option idleTimeoutMs)",
  [lockTimeout]: ({ place }) =>
    `a row of the tables ${place} stayed locked by another transaction; look for transactions that are left open`,
};

export const inTransaction =
  "the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing a client";

/** Adds the remedy to an error, with the original as cause. Returns other errors as they are. */
export function explained(caller: string, names: TablePlace, error: unknown): unknown {
  const code = sqlStateOf(error);
  const remedy = code === undefined ? undefined : remedies[code];
  return remedy === undefined ? error : new Error(`${caller}: ${remedy(names)}`, { cause: error });
}

export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === lockTimeout;
}

/** The first SQLSTATE of the error or those that it wraps: ORMs throw errors of their own. */
export function sqlStateOf(error: unknown): string | undefined {
  for (const wrapped of wrappedErrors(error)) {
    const found = [Reflect.get(wrapped, "code"), Reflect.get(wrapped, "originalCode")].find(isSqlState);
    if (found !== undefined) return found;
  }
  return undefined;
}

// Five characters like a SQLSTATE, and none: Node's EPIPE and its like, Prisma's P1001 and its like.
const otherCode = /^(?:E[A-Z]{4}|P[1-9]\d{3})$/;

function isSqlState(code: unknown): code is string {
  return typeof code === "string" && /^[\dA-Z]{5}$/.test(code) && !otherCode.test(code);
}
