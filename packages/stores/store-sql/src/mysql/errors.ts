import { GuardError } from "@countersign/core";
import type { TransactionFault } from "@countersign/idempotency";
import { wrappedErrors } from "@countersign/idempotency/store";
import type { TableNames } from "./table-names.ts";

/** Errno of RELEASE: the transaction in which the savepoint was set has ended. */
export const noSavepoint = 1305;

/** Errno of SET: no such value. Nothing of the statement has taken effect. */
export const wrongValue = 1231;

/** Errno of a statement that writes in a read-only transaction. */
export const readOnlyTransaction = 1792;

/** Errno of an INSERT: the primary key is there. */
export const duplicateKey = 1062;

/** Errno of an integer that no column can have. */
export const outOfRange = 1690;

/** Whether a statement was ended by KILL QUERY or max_statement_time. The server says so of a COMMIT that has taken effect, too. */
export function isInterrupted(errno: number | undefined): boolean {
  return errno === 1317 || errno === 1969;
}

// The server has rolled the whole transaction back: a deadlock (to Galera also a change of the row on another node), another member's change of
// it in a group (3101), or under innodb_snapshot_isolation a row that changed after the snapshot. Clusters find the first two at COMMIT too.
const conflicts: ReadonlySet<number> = new Set([1213, 3101, 1020]);

/** Errno of a COMMIT that has failed. The number in its message says why. */
const failedCommit = 1180;
const lockDeadlock = /\berror 149\b/;

// The server undoes the statement alone.
const lockTimeout = 1205;

/** A server that ends, a connection that was ended or refused, and no room for one more. */
const lostConnection: readonly number[] = [
  1040, 1042, 1043, 1053, 1077, 1078, 1079, 1080, 1129, 1130, 1152, 1153, 1154, 1155, 1156, 1157, 1158, 1159,
  1160, 1161, 1184, 1203, 1226, 1927, 2002, 2003, 2006, 2013, 2055, 3168, 3169, 4031,
];

/**
 * A server that takes no writes now; another node may. A node outside of its cluster (1047), or that left it during COMMIT (1180); a member that
 * cannot ask its group (3100), or not with this consistency (3796 to 3799); a secondary, a replica, a server in read-only or offline mode.
 * None of them is a rollback: what failed with 3100 in a minority has committed when the majority was there again.
 */
const takesNoWrites: readonly number[] = [1047, 1180, 3100, 3796, 3797, 3798, 3799, 1290, 1792, 1836, 3032];

const unavailable: ReadonlySet<number> = new Set([...lostConnection, ...takesNoWrites]);

const lostLine = /^(?:PROTOCOL_|E(?:CONN|PIPE|TIMEDOUT|HOST|NET|ADDR|AI_|NOTFOUND))/;

/** For {@link TransactionStore.faultOf}: by the first error in the chain that the engine or its line has made. */
export function faultOf(error: unknown): TransactionFault | undefined {
  // Ours, with the server's answer as its cause.
  if (error instanceof GuardError) return undefined;
  for (const each of wrappedErrors(error)) {
    const fault = ownFault(each);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function ownFault(error: object): TransactionFault | undefined {
  const errno = ownErrno(error);
  if (errno !== undefined) {
    if (conflicts.has(errno)) return "conflict";
    // As 1213, found by Group Replication at COMMIT.
    if (errno === failedCommit && lockDeadlock.test(ownMessage(error))) return "conflict";
    if (errno === lockTimeout) return "locked";
    // From 45,000 on they are the MariaDB connector's own: its line or its pool. Other drivers' are below 0.
    if (unavailable.has(errno) || errno < 0 || errno >= 45_000) return "unavailable";
  }
  const code: unknown = Reflect.get(error, "code");
  const isLost = typeof code === "string" && lostLine.test(code);
  if (isLost || Reflect.get(error, "fatal") === true) return "unavailable";
  return errno === undefined ? undefined : "refused";
}

/** The server's number for an error, also of one that a library has wrapped. */
export function errnoOf(error: unknown): number | undefined {
  for (const each of wrappedErrors(error)) {
    const errno = ownErrno(each);
    if (errno !== undefined) return errno;
  }
  return undefined;
}

// mysql2 and the MariaDB connector have `errno`, Prisma a `code` of digits.
function ownErrno(error: object): number | undefined {
  const values: readonly unknown[] = [Reflect.get(error, "errno"), Reflect.get(error, "code")];
  const found = values.find(
    (value) => typeof value === "number" || (typeof value === "string" && /^\d{4,5}$/.test(value)),
  );
  return found === undefined ? undefined : Number(found);
}

// Prisma's driver adapter has its own beside the server's.
function ownMessage(error: object): string {
  return ["message", "originalMessage"].map((name) => String(Reflect.get(error, name))).join(" ");
}

const grants = "GRANT SELECT, INSERT, UPDATE, DELETE on them to the user of the pool";

type TablePlace = Pick<TableNames, "place" | "migrate">;

const readOnly = ({ place }: TablePlace): string =>
  `the tables ${place} cannot be written here; connect to the primary server, with transactions that may write`;

const remedies: Readonly<Record<number, (names: TablePlace) => string>> = {
  1146: ({ place, migrate }) => `the tables ${place} are missing; create them with: ${migrate}`,
  1054: ({ place, migrate }) =>
    `the tables ${place} are of another release; bring them up to date with: ${migrate}`,
  1142: ({ place }) => `the user may not use the tables ${place}; ${grants}`,
  1143: ({ place }) => `the user may not use the tables ${place}; ${grants}`,
  1290: readOnly,
  1792: readOnly,
  1836: readOnly,
  [lockTimeout]: ({ place }) =>
    `a row of the tables ${place} stayed locked by another transaction; look for transactions that are left open`,
};

/** Adds the remedy to an error, with the original as cause. Returns other errors as they are. */
export function explained(caller: string, names: TablePlace, error: unknown): unknown {
  const errno = errnoOf(error);
  const remedy = errno === undefined ? undefined : remedies[errno];
  return remedy === undefined ? error : new Error(`${caller}: ${remedy(names)}`, { cause: error });
}

/** True when the server refuses to write: 1290 `read_only`, 1792 a read-only transaction, 1836 a read-only engine. */
export function isReadOnly(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === 1290 || errno === 1792 || errno === 1836;
}
