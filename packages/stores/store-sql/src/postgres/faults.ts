import { isGuardError } from "@countersign/core";
import type { TransactionFault } from "@countersign/idempotency";
import { wrappedErrors } from "@countersign/idempotency/store";
import { isLockTimeout, sqlStateOf } from "./errors.ts";

const conflicts = new Set(["40001", "40P01"]);

// Classes: connection, operator intervention (a shutdown, not a cancelled query). Idle sessions, no connection left, a server that takes no
// writes, such as a standby, and a statement or COMMIT whose outcome a distributed server does not know.
const unavailable = /^(?:08...|57P0.|25P0[34]|25006|40003|53300)$/;

// Prisma: write conflict or deadlock; no transaction could begin, or its own time-out ended it; no server or connection.
const prismaConflict = "P2034";
const prismaUnavailable = new Set(["P1001", "P1002", "P1008", "P1017", "P2024", "P2028"]);

// Of sockets, and of postgres.js.
const lostLine =
  /^(?:ECONN[A-Z]+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CONNECTION_(?:CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT)$/;

// Of pg, pg-pool, Knex (its pool: tarn), Sequelize, TypeORM, and their like: without a code.
const lostLineMessage =
  /Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|^timeout expired$|Timeout acquiring a connection|Operation timeout|Client was closed|Connection ended/i;
const lostLineName =
  /^(?:Sequelize)?(?:KnexTimeout|ConnectionAcquireTimeout|Connection(?:Refused|TimedOut)?|HostNot(?:Found|Reachable)|QueryRunnerAlreadyReleased)Error$/;

/** For `TransactionStore.faultOf`. */
export function faultOf(error: unknown): TransactionFault | undefined {
  // Ours: it says itself what it means.
  if (isGuardError(error)) return undefined;
  const state = sqlStateOf(error);
  if (state !== undefined) return faultOfState(state, error);
  for (const wrapped of wrappedErrors(error)) {
    const code: unknown = Reflect.get(wrapped, "code");
    if (code === prismaConflict) return "conflict";
    if (typeof code === "string" && (prismaUnavailable.has(code) || lostLine.test(code)))
      return "unavailable";
    const { name, message }: { readonly name?: unknown; readonly message?: unknown } = wrapped;
    if (lostLineName.test(String(name)) || lostLineMessage.test(String(message))) return "unavailable";
  }
  return undefined;
}

function faultOfState(state: string, error: unknown): TransactionFault {
  if (conflicts.has(state)) return "conflict";
  if (isLockTimeout(error)) return "locked";
  return unavailable.test(state) || endedSession(error) ? "unavailable" : "refused";
}

const fatal: ReadonlySet<unknown> = new Set(["FATAL", "PANIC"]);

/** Whether the error has ended the session, as a pooler does that has lost its server: at COMMIT, nobody knows. */
function endedSession(error: unknown): boolean {
  return wrappedErrors(error).some((wrapped) => fatal.has(Reflect.get(wrapped, "severity")));
}
