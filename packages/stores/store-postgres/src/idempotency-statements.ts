import type { IdempotencyRecord } from "@countersign/idempotency";
import { leaseExpired, fenceMemoryMs } from "@countersign/idempotency/store";
import type { ResolvedPostgresOptions } from "./options.ts";
import { removal } from "./pruning.ts";
import {
  type Clock,
  clockOf,
  floorKey,
  isAlone,
  isDurable,
  isInTransaction,
  isReadyToInsert,
  microseconds,
  milliseconds,
  settings,
  transactionStart,
  wholeMilliseconds,
} from "./statement-parts.ts";

// A heartbeat must not wait for the transaction of completeIn(). It fails without harm: that transaction's lock keeps the key.
const heartbeatLockTimeoutMs = 100;

export type IdempotencyStatements = ReturnType<typeof idempotencyStatements>;

/** Statements as text: named ones fail behind PgBouncer. A test's clock follows the parameters, except in `hold` and `beginToWrite`. */
export function idempotencyStatements(options: ResolvedPostgresOptions) {
  const { names, lockTimeoutMs, retentionMs } = options;
  const { idempotency } = names;
  const now = clockOf(options);
  const update = (set: string, where: string, timeoutMs = lockTimeoutMs): string =>
    `WITH ${settings(timeoutMs)}
UPDATE ${idempotency} AS kept SET ${set} FROM settings WHERE kept.key = $1 AND ${where} RETURNING kept.state`;
  const done = (parameters: number): string =>
    `state = 'done', reason = '', until_at = ${now(parameters)} + ${milliseconds(retentionMs)}`;
  const isCompletable = "kept.token = $2 AND kept.state IN ('running', 'held')";
  const isExpired = `state IN ('done', 'free') AND until_at <= (SELECT ${now(0)})`;
  const isRunOfToken = "kept.token = $2 AND kept.state = 'running'";
  return {
    // $1 key.
    look: `SELECT ${isAlone} AS is_alone, ${keyColumns(now(1))} FROM ${idempotency} AS kept WHERE kept.key = $1`,
    insert: insertStatement(options, now),
    takeOver: takeOverStatement(options, now),
    // $1 key, $2 token, $3 lease.
    heartbeat: update(
      `until_at = ${now(3)} + ${milliseconds("$3")}`,
      isRunOfToken,
      Math.min(lockTimeoutMs, heartbeatLockTimeoutMs),
    ),
    // $1 key, $2 token.
    complete: update(done(2), isCompletable),
    // $1 key, $2 token, $3 the transaction that it must be, null for any: after a COMMIT or ROLLBACK on its way, `done` would commit
    // alone. The caller's session says how long it waits for a lock.
    completeIn: `WITH completed AS (
  UPDATE ${idempotency} AS kept SET ${done(3)} WHERE kept.key = $1 AND ${isCompletable} AND ${isInTransaction}
    AND ($3::text IS NULL OR ${transactionStart} = $3) AND ${isDurable} RETURNING kept.state)
SELECT EXISTS (SELECT FROM completed) AS is_completed, ${transactionStart} AS transaction`,
    // Makes the transaction one that has written. Does nothing where none is open.
    beginToWrite: "SELECT txid_current()::text",
    // $1 key, $2 token. A retry that fails must not remove an operator's decision.
    release: update(
      `state = 'free',
  until_at = ${now(2)} + CASE WHEN kept.decision IS NULL THEN ${milliseconds(fenceMemoryMs)} ELSE ${milliseconds(retentionMs)} END`,
      isRunOfToken,
    ),
    // $1 key, $2 token, $3 reason.
    hold: update("state = 'held', reason = $3", isRunOfToken),
    // $1 key, $2 whether it is done, $3 the token that nobody has, $4 the fence that the operator has seen, $5 by whom, $6 the note.
    resolve: update(
      `state = CASE WHEN $2 THEN 'done' ELSE 'free' END, token = $3, reason = '', until_at = ${now(6)} + ${milliseconds(retentionMs)},
  decision = CASE WHEN $2 THEN 'done' ELSE 'released' END, decision_fence = kept.fence, decision_at = ${now(6)},
  decision_by = $5, decision_note = $6, decision_reason = CASE WHEN kept.state = 'held' THEN kept.reason ELSE '${leaseExpired}' END,
  reopened_at = NULL, reopened_by = NULL, reopened_note = NULL`,
      `kept.fence = $4 AND (kept.state = 'held' OR (kept.state = 'running' AND kept.until_at <= ${now(6)}))`,
    ),
    // $1 key, $2 the fence decided about, $3 the token that nobody has, $4 by whom, $5 the note. A new fence: a decision sent again fails.
    reopen: update(
      `state = 'held', token = $3, fence = kept.fence + 1, reason = kept.decision_reason,
  reopened_at = ${now(5)}, reopened_by = $4, reopened_note = $5`,
      `kept.fence = $2 AND kept.decision_fence = kept.fence AND kept.state IN ('done', 'free') AND kept.until_at > ${now(5)}`,
    ),
    // The same commit keeps the highest fence in the floor.
    removeExpired: `WITH removed AS (${removal(idempotency, isExpired, "state, fence")}),
raised AS (
  INSERT INTO ${idempotency} AS kept (key, state, token, fence, fingerprint, reason, until_at)
  SELECT ${floorKey}, 'free', '', max(fence), '', 'highest fence of a pruned key', '9999-12-31 00:00:00+00' FROM removed HAVING count(*) > 0
  ON CONFLICT (key) DO UPDATE SET fence = greatest(kept.fence, excluded.fence))
SELECT state FROM removed`,
  };
}

/** A page after key $1, of $2 rows, in key order: no key changes pages. The state is a literal: a partial index serves no parameter. */
export function pageStatement(options: ResolvedPostgresOptions, state: IdempotencyRecord["state"]): string {
  const now = clockOf(options)(2);
  const live = state === "done" ? ` AND kept.until_at > (SELECT ${now})` : "";
  return `SELECT kept.key, ${keyColumns(now)} FROM ${options.names.idempotency} AS kept
WHERE kept.state = '${state}'${live} AND kept.key > $1 ORDER BY kept.key LIMIT $2`;
}

/** Selects a key's row, with the seconds that remain until its end by the clock. */
function keyColumns(now: string): string {
  return `kept.state, kept.token, kept.fence, kept.fingerprint, kept.reason, ${remaining(now)}, ${decisionColumns}`;
}

const decisionColumns = [
  "kept.decision, kept.decision_fence, kept.decision_by, kept.decision_note, kept.decision_reason",
  "kept.reopened_by, kept.reopened_note",
  ...["decision_at", "reopened_at"].map((at) => `${wholeMilliseconds(`kept.${at}`)} AS ${at}`),
].join(", ");

/** As a text: some libraries give a numeric as an object of their own. */
function remaining(now: string): string {
  return `extract(epoch FROM kept.until_at - ${now})::text AS remaining_seconds`;
}

/**
 * $1 key, $2 token, $3 fingerprint, $4 lease. Returns no row when the key is there: it looks first, so that a duplicate writes nothing.
 * The fence is the time, and above all that was pruned, in case the clock was set back. A pruning that commits meanwhile is not seen,
 * but then the key still seems to be there.
 */
function insertStatement({ names, lockTimeoutMs }: ResolvedPostgresOptions, now: Clock): string {
  return `INSERT INTO ${names.idempotency} AS kept (key, state, token, fence, fingerprint, reason, until_at)
SELECT $1, 'running', $2, greatest(${microseconds(now(4))}, (SELECT pruned.fence + 1 FROM ${names.idempotency} AS pruned WHERE pruned.key = ${floorKey})),
  $3, '', ${now(4)} + ${milliseconds("$4")}
WHERE NOT EXISTS (SELECT FROM ${names.idempotency} AS seen WHERE seen.key = $1) AND ${isReadyToInsert(lockTimeoutMs)}
ON CONFLICT (key) DO NOTHING RETURNING true AS is_own, kept.state, kept.fence`;
}

/**
 * $1 key, $2 token, $3 fingerprint, $4 lease, $5 whether an expired run is to be held. Returns no row when nothing can be taken over.
 * It reads the clock once: what is expired for the condition must not be live for the columns. Another owner's lease that ends too
 * late is cut. The fence is above the locked row's, and at least the time: above those whose commits a failover has lost.
 */
function takeOverStatement({ names, lockTimeoutMs }: ResolvedPostgresOptions, now: Clock): string {
  const until = `settings.now + ${milliseconds("$4")}`;
  const isOwn = "kept.state = 'running' AND kept.token = $2";
  const isOther = "kept.state = 'running' AND kept.token <> $2";
  const isCut = `${isOther} AND kept.until_at > settings.now`;
  const isHeld = `${isOther} AND kept.until_at <= settings.now AND $5`;
  const keepsOwner = `(${isCut}) OR (${isHeld})`;
  const keeps = `(${isOwn}) OR ${keepsOwner}`;
  // A row that is over, and not yet pruned, keeps no decision.
  const isOver = "kept.state IN ('done', 'free') AND kept.until_at <= settings.now";
  return `WITH ${settings(lockTimeoutMs, `${now(5)} AS now`)}
UPDATE ${names.idempotency} AS kept SET
  state = CASE WHEN ${isHeld} THEN 'held' ELSE 'running' END,
  token = CASE WHEN ${keepsOwner} THEN kept.token ELSE $2 END,
  fence = CASE WHEN ${keeps} THEN kept.fence ELSE greatest(kept.fence + 1, ${microseconds("settings.now")}) END,
  fingerprint = CASE WHEN ${keeps} THEN kept.fingerprint ELSE $3 END,
  reason = CASE WHEN ${isHeld} THEN '${leaseExpired}' ELSE '' END,
  until_at = CASE WHEN ${isHeld} THEN kept.until_at ELSE ${until} END,
  decision = CASE WHEN ${isOver} THEN NULL ELSE kept.decision END
FROM settings
WHERE kept.key = $1 AND (kept.state = 'free' OR (${isOwn}) OR (${isOther} AND kept.until_at > ${until})
  OR (kept.state IN ('running', 'done') AND kept.until_at <= settings.now))
RETURNING kept.token = $2 AS is_own, kept.state, kept.fence, kept.fingerprint, kept.reason, ${remaining("settings.now")}`;
}
