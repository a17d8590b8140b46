import { leaseExpired } from "@countersign/idempotency/store";
import type { SqliteDatabase, SqliteStatement } from "./connection.ts";
import { decisionColumns, engineClock, tableNames } from "./schema.ts";

// Plain question marks: numbered parameters are named in one driver. A null time is SQLite's clock, read once the lock is held.
const time = `coalesce(?, ${engineClock})`;

/** Statements belong to the connection that prepared them. */
export type IdempotencyStatements = ReturnType<typeof prepareIdempotency>;

export function prepareIdempotency(database: SqliteDatabase, table: string) {
  const { idempotency, schema } = tableNames(table);
  const prepare = (sql: string): SqliteStatement => database.prepare(sql);
  const kept = `state, token, fence, fingerprint, reason, until_ms, ${decisionColumns.join(", ")}`;
  const page = (condition: string): SqliteStatement =>
    prepare(
      `SELECT key, ${kept}, ${time} AS now_ms FROM ${idempotency} WHERE ${condition} ORDER BY key LIMIT ?`,
    );
  return {
    complete: prepareCompletion(database, table),
    look: prepare(
      `SELECT ${engineClock} AS now_ms, floor.fence_floor, kept.state, kept.token, kept.fence, kept.fingerprint, kept.reason,
         kept.until_ms, ${decisionColumns.map((column) => `kept.${column}`).join(", ")}
       FROM ${schema} AS floor LEFT JOIN ${idempotency} AS kept ON kept.key = ? WHERE floor.id = 1`,
    ),
    // A row that is over, and not yet pruned, keeps no decision. The last parameter is the time.
    take: prepare(
      `INSERT INTO ${idempotency} (key, state, token, fence, fingerprint, reason, until_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET state = excluded.state, token = excluded.token, fence = excluded.fence,
         fingerprint = excluded.fingerprint, reason = excluded.reason, until_ms = excluded.until_ms,
         decision = CASE WHEN state IN ('done', 'free') AND until_ms <= ? THEN NULL ELSE decision END`,
    ),
    lease: prepare(`UPDATE ${idempotency} SET until_ms = ? WHERE key = ?`),
    holdNow: prepare(`UPDATE ${idempotency} SET state = 'held', reason = ? WHERE key = ?`),
    heartbeat: prepare(
      `UPDATE ${idempotency} SET until_ms = ${time} + ? WHERE key = ? AND token = ? AND state = 'running'`,
    ),
    release: prepare(
      `UPDATE ${idempotency} SET state = 'free', until_ms = ${time} + ? WHERE key = ? AND token = ? AND state = 'running'`,
    ),
    // What the transaction of this token has written as done.
    undo: prepare(
      `UPDATE ${idempotency} SET state = 'free', until_ms = ${time} + ? WHERE key = ? AND token = ? AND state = 'done'`,
    ),
    // What the transaction of this token has written as done, or as held.
    holdDone: prepare(
      `UPDATE ${idempotency} SET state = 'held', reason = ? WHERE key = ? AND token = ? AND state IN ('done', 'held')`,
    ),
    hold: prepare(
      `UPDATE ${idempotency} SET state = 'held', reason = ? WHERE key = ? AND token = ? AND state = 'running'`,
    ),
    resolve: prepare(
      `UPDATE ${idempotency} SET state = ?, token = ?, reason = '', until_ms = ${time} + ?,
         decision = ?, decision_fence = fence, decision_at = ${time}, decision_by = ?, decision_note = ?,
         decision_reason = CASE state WHEN 'held' THEN reason ELSE '${leaseExpired}' END,
         reopened_at = NULL, reopened_by = NULL, reopened_note = NULL
       WHERE key = ? AND fence = ? AND (state = 'held' OR (state = 'running' AND until_ms <= ${time}))`,
    ),
    // With the old fence, a decision that is sent again would decide anew.
    reopen: prepare(
      `UPDATE ${idempotency} SET state = 'held', token = ?, fence = fence + 1, reason = decision_reason,
         reopened_at = ${time}, reopened_by = ?, reopened_note = ?
       WHERE key = ? AND fence = ? AND decision_fence = fence AND state IN ('done', 'free') AND until_ms > ${time}`,
    ),
    removeExpired: prepare(
      `DELETE FROM ${idempotency} WHERE key IN (
         SELECT key FROM ${idempotency} WHERE state IN ('done', 'free') AND until_ms <= ${time} ORDER BY until_ms LIMIT ?)
       RETURNING state, fence`,
    ),
    // Pages in key order, each from the last key of the page before: no key changes pages when others come or go. SQLite uses a partial
    // index only where the query repeats its terms.
    pages: {
      live: page("state IN ('running', 'held') AND state = ? AND key > ?"),
      done: page(`state = 'done' AND until_ms > ${time} AND key > ?`),
    },
    raiseFenceFloor: prepare(`UPDATE ${schema} SET fence_floor = max(fence_floor, ?) WHERE id = 1`),
  };
}

/** Prepares a completion, on a connection of the store or of the caller. */
export function prepareCompletion(database: SqliteDatabase, table: string): SqliteStatement {
  return database.prepare(
    `UPDATE ${tableNames(table).idempotency} SET state = 'done', reason = '', until_ms = ${time} + ?
     WHERE key = ? AND token = ? AND state IN ('running', 'held')`,
  );
}

/** Takes the write lock of an open transaction, by exec(), and writes no page. */
export function takeWriteLock(table: string): string {
  return `UPDATE ${tableNames(table).schema} SET fence_floor = fence_floor WHERE 0`;
}
