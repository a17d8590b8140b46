import type { IdempotencyRecord, TransactionKey } from "@countersign/idempotency";
import { fenceMemoryMs, leaseExpired } from "@countersign/idempotency/store";
import { keyColumns } from "./key-row.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { forStatement, isAlone, isInTransaction, microseconds } from "./statement-parts.ts";
import { bytesOf, digestOf } from "./values.ts";

// MariaDB's shortest. A heartbeat must not wait for the transaction of completeIn(): its lock keeps the key anyway.
const heartbeatLockTimeoutMs = 1_000;

const columns = "digest, name, mark, state, token, fence, fingerprint, reason, recovery, until_us";

type Names = Pick<ResolvedMysqlOptions<unknown>, "names" | "lockTimeoutMs" | "retentionMs">;

/** The statements of one moment, `now`. Values: the digest, then those of the condition, then those of the assignments. */
export function idempotencyStatements({ names, lockTimeoutMs, retentionMs }: Names, now: string) {
  const { idempotency, schema } = names;
  // Gives the row when it was changed, and none otherwise: an UPDATE cannot. The SELECT locks what it finds, and `seen` is the row before.
  const change = (
    set: string,
    where: string,
    bound: string,
  ): string => `${bound}INSERT INTO ${idempotency} (${columns})
SELECT ${columns} FROM ${idempotency} AS seen WHERE seen.digest = ? AND ${where} FOR UPDATE
ON DUPLICATE KEY UPDATE ${set} RETURNING state, ${isAlone}`;
  const update = (set: string, where: string, timeoutMs = lockTimeoutMs): string =>
    change(set, where, forStatement(timeoutMs));
  const done = `state = 'done', reason = '', until_us = ${now} + ${microseconds(retentionMs)}`;
  const isCompletable = "seen.token = ? AND seen.state IN ('running', 'held')";
  const isRunOfToken = "seen.token = ? AND seen.state = 'running'";
  // All that paid a done key has committed with it.
  const isOfRun = "seen.token = ? AND seen.state <> 'free'";
  const holdRun = `state = IF(seen.state = 'done', 'done', 'held'), reason = IF(seen.state = 'done', '', ?),
  until_us = IF(seen.state = 'done', seen.until_us, ${now})`;
  const look = `SELECT kept.highest_fence, ${isAlone}, ${keyColumns(now, "seen.")} FROM ${schema} AS kept
LEFT JOIN ${idempotency} AS seen ON seen.digest = ? WHERE kept.id = 1`;
  const memory = `IF(seen.decision IS NULL, ${microseconds(fenceMemoryMs)}, ${microseconds(retentionMs)})`;
  return {
    // digest
    look,
    /** Of a row that is locked, so that nothing is found which may still be rolled back. */
    lookLocked: `${forStatement(lockTimeoutMs)}SELECT 0 AS highest_fence, ${isAlone}, ${keyColumns(now, "seen.")} FROM ${idempotency} AS seen
WHERE seen.digest = ? LOCK IN SHARE MODE`,
    // digest, token; lease
    heartbeat: update(
      `until_us = ${now} + ${microseconds("?")}`,
      isRunOfToken,
      Math.min(lockTimeoutMs, heartbeatLockTimeoutMs),
    ),
    // digest, token
    complete: update(done, isCompletable),
    // digest, token. The condition is the server's: after a COMMIT or ROLLBACK on its way, `done` would commit alone.
    completeIn: change(done, `${isCompletable} AND ${isInTransaction}`, forStatement()),
    // digest, token. A retry that fails must not remove an operator's decision.
    release: update(`state = 'free', until_us = ${now} + ${memory}`, isRunOfToken),
    // digest, token; reason
    hold: update("state = 'held', reason = ?", isRunOfToken),
    // digest, token; reason
    holdRun: update(holdRun, isOfRun),
    /** The same in the transaction itself, where no key has committed as done. */
    holdRunIn: change(`state = 'held', reason = ?, until_us = ${now}`, isOfRun, forStatement()),
    // digest, fence that the operator has seen; whether it is done, a token that nobody has, the outcome, by whom, the note
    resolve: update(
      `state = IF(?, 'done', 'free'), token = ?, reason = '', until_us = ${now} + ${microseconds(retentionMs)},
  decision = ?, decision_fence = seen.fence, decision_us = ${now}, decision_by = ?, decision_note = ?,
  decision_reason = IF(seen.state = 'held', seen.reason, '${leaseExpired}'), reopened_us = NULL, reopened_by = NULL, reopened_note = NULL`,
      `seen.fence = ? AND (seen.state = 'held' OR (seen.state = 'running' AND seen.until_us <= ${now}))`,
    ),
    // digest, fence decided about; a token that nobody has, by whom, the note. A new fence: a decision sent again fails.
    reopen: update(
      `state = 'held', token = ?, fence = seen.fence + 1, reason = seen.decision_reason,
  reopened_us = ${now}, reopened_by = ?, reopened_note = ?`,
      `seen.fence = ? AND seen.decision_fence = seen.fence AND seen.state IN ('done', 'free') AND seen.until_us > ${now}`,
    ),
  };
}

/** A page after the first digest, of as many rows as the second value says, by digest: no key changes pages. */
export function pageStatement(idempotency: string, state: IdempotencyRecord["state"], now: string): string {
  const live = state === "done" ? ` AND until_us > ${now}` : "";
  return `SELECT digest, name, ${keyColumns(now)} FROM ${idempotency}
WHERE state = '${state}'${live} AND digest > ? ORDER BY digest LIMIT ?`;
}

/** Frees keys that a transaction has begun. Values: {@link identitiesOf}. */
export function freeStatement({ names, retentionMs }: Names, now: string, count: number): string {
  const memory = `IF(decision IS NULL, ${microseconds(fenceMemoryMs)}, ${microseconds(retentionMs)})`;
  // By the primary key: a walk through the table would wait for other transactions' rows.
  return `${forStatement()}UPDATE ${names.idempotency} FORCE INDEX (PRIMARY) SET state = 'free', until_us = ${now} + ${memory}
WHERE ${isRunBy(count)}`;
}

/** Makes keys done that a transaction has begun, and gives them as they are then. Values: {@link identitiesOf}. */
export function doneStatement(
  { names: { idempotency }, retentionMs }: Names,
  now: string,
  count: number,
): string {
  // An UPDATE gives no rows: what triggers have made of them would not be seen.
  return `${forStatement()}INSERT INTO ${idempotency} (${columns})
SELECT ${columns} FROM ${idempotency} FORCE INDEX (PRIMARY) WHERE ${isRunBy(count)} FOR UPDATE
ON DUPLICATE KEY UPDATE state = 'done', reason = '', until_us = ${now} + ${microseconds(retentionMs)}
RETURNING state AS kept_as`;
}

/** Digests, then tokens. */
export function identitiesOf(keys: readonly TransactionKey[]): Buffer[] {
  return [...keys.map(({ key }) => digestOf(key)), ...keys.map(({ token }) => bytesOf(token))];
}

/** Gives a row for each of these keys that is running all the same. Values as above. */
export function stillRunningStatement({ names }: Names, count: number): string {
  return `SELECT digest AS still_running FROM ${names.idempotency} FORCE INDEX (PRIMARY) WHERE ${isRunBy(count)}`;
}

function isRunBy(count: number): string {
  const places = Array.from({ length: count }, () => "?").join(", ");
  return `digest IN (${places}) AND token IN (${places}) AND state = 'running'`;
}
