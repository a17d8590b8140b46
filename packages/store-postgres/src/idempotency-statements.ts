import type { leaseExpired } from "@countersign/idempotency-guard";
import { pruneBatchSize } from "@countersign/store-core";
import type { ResolvedOptions } from "./options.ts";
import {
  callersSettings,
  clock,
  isAlone,
  milliseconds,
  millisecondsFrom,
  settings,
} from "./statement-parts.ts";

/** The reason recorded for a lease that expired; the literal of the guard, whose code is not needed at run time. */
export const leaseExpiredReason: typeof leaseExpired = "lease-expired";

// The owner's own transaction keeps the row locked from completeIn() to its end. A heartbeat must not sit on a connection for so
// long: it fails at once, as one that was missed, and while the lock lasts nobody else gets the key.
const heartbeatLockTimeoutMs = 100;

/** The statements of the idempotency store, as text: none is prepared by name, for PgBouncer's sake. */
export interface IdempotencyStatements {
  readonly look: string;
  readonly claim: string;
  readonly heartbeat: string;
  readonly complete: string;
  readonly completeIn: string;
  readonly requireTransaction: string;
  readonly release: string;
  readonly hold: string;
  readonly resolve: string;
  readonly removeExpired: string;
}

export function idempotencyStatements({ names, lockTimeoutMs }: ResolvedOptions): IdempotencyStatements {
  const { idempotency } = names;
  const update = (set: string, where: string, withSettings = settings(lockTimeoutMs)): string =>
    `WITH ${withSettings}
UPDATE ${idempotency} AS kept SET ${set} FROM settings WHERE kept.key = $1 AND ${where} RETURNING kept.state`;
  const done = `state = 'done', reason = '', until_at = ${clock("$3")} + ${milliseconds("$4")}`;
  const completable = "kept.token = $2 AND kept.state IN ('run', 'held')";
  return {
    // Always one row. $1 key, $2 clock.
    look: `SELECT ${isAlone} AS is_alone, ${keyColumns("$2")} FROM (VALUES (1)) AS one LEFT JOIN ${idempotency} AS kept ON kept.key = $1`,
    claim: claimStatement(names.idempotency, names.fences, lockTimeoutMs),
    // $1 key, $2 token, $3 clock, $4 lease.
    heartbeat: update(
      `until_at = ${clock("$3")} + ${milliseconds("$4")}`,
      "kept.token = $2 AND kept.state = 'run'",
      settings(Math.min(lockTimeoutMs, heartbeatLockTimeoutMs)),
    ),
    // $1 key, $2 token, $3 clock, $4 retention.
    complete: update(done, completable),
    completeIn: update(done, completable, callersSettings),
    // The one command without a trace that the server refuses outside of a transaction: the lock is that of the update to come.
    requireTransaction: `LOCK TABLE ${idempotency} IN ROW EXCLUSIVE MODE`,
    // $1 key, $2 token, $3 clock, $4 for how long the fence is remembered.
    release: update(
      `state = 'free', until_at = ${clock("$3")} + ${milliseconds("$4")}`,
      "kept.token = $2 AND kept.state = 'run'",
    ),
    // $1 key, $2 token, $3 reason.
    hold: update("state = 'held', reason = $3", "kept.token = $2 AND kept.state = 'run'"),
    // $1 key, $2 state, $3 clock, $4 for how long it is remembered.
    resolve: update(
      `state = $2, reason = '', until_at = ${clock("$3")} + ${milliseconds("$4")}`,
      `(kept.state = 'held' OR (kept.state = 'run' AND kept.until_at <= ${clock("$3")}))`,
    ),
    // $1 clock. By row address, which no plan can turn into a walk over the table; the rows are locked, so nothing moves them.
    removeExpired: `DELETE FROM ${idempotency} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${idempotency} WHERE state IN ('done', 'free') AND until_at <= (SELECT ${clock("$1")})
  ORDER BY until_at LIMIT ${pruneBatchSize} FOR UPDATE SKIP LOCKED)) RETURNING state`,
  };
}

/** The columns of a key's row, with what is left of its time by the clock. */
export function keyColumns(clockParameter: string): string {
  return `kept.key, kept.state, kept.token, kept.fence::text AS fence, kept.fingerprint, kept.reason,
  ${millisecondsFrom(clock(clockParameter), "kept.until_at")} AS remaining_ms`;
}

/**
 * $1 key, $2 token, $3 fingerprint, $4 clock, $5 lease, $6 whether an expired run is to be held. No row: somebody else has it.
 *
 * The fence of a takeover is drawn from the sequence under the row's lock, so it is above that of every owner before. A new row
 * has drawn its fence before it was inserted; it is above those of the key's owners before it, because a released or
 * forgotten key keeps its row for a day or longer.
 */
function claimStatement(idempotency: string, fences: string, lockTimeoutMs: number): string {
  const until = `${clock("$4")} + ${milliseconds("$5")}`;
  const isOwn = "kept.state = 'run' AND kept.token = excluded.token";
  const isKept = `kept.state = 'run' AND (kept.token = excluded.token OR $6)`;
  const isHeld = `kept.state = 'run' AND kept.token <> excluded.token AND $6`;
  return `WITH ${settings(lockTimeoutMs)}
INSERT INTO ${idempotency} AS kept (key, state, token, fence, fingerprint, reason, until_at)
SELECT $1, 'run', $2, nextval(${fences}), $3, '', ${until} FROM settings
ON CONFLICT (key) DO UPDATE SET
  state = CASE WHEN ${isHeld} THEN 'held' ELSE 'run' END,
  token = CASE WHEN ${isKept} THEN kept.token ELSE excluded.token END,
  fence = CASE WHEN ${isKept} THEN kept.fence ELSE nextval(${fences}) END,
  fingerprint = CASE WHEN ${isKept} THEN kept.fingerprint ELSE excluded.fingerprint END,
  reason = CASE WHEN ${isHeld} THEN '${leaseExpiredReason}' ELSE '' END,
  until_at = CASE WHEN ${isHeld} THEN kept.until_at ELSE ${until} END
WHERE kept.state = 'free' OR (${isOwn}) OR (kept.state IN ('run', 'done') AND kept.until_at <= ${clock("$4")})
RETURNING state, fence::text AS fence, fingerprint, reason`;
}
