import type { TransactionClaim } from "@countersign/idempotency";
import { encodeText, type Added, type NewRow, type Row } from "@countersign/idempotency/store";
import { isDurable } from "./durability.ts";
import { singleRow } from "./queryable.ts";
import { floorKey, microseconds, milliseconds } from "./statement-parts.ts";
import { digestNonce, encodeKey } from "./stored-key.ts";
import type { TableNames } from "./table-names.ts";

/** The setting that keeps what `synchronous_commit` was when the transaction began. */
export const savedDurability = "countersign.synchronous_commit";

/** First rows of keys as JSON: texts as stored, times in milliseconds. */
export interface AddCall {
  /** In the order in which they are added. */
  readonly keys: readonly Readonly<Record<string, string | number>>[];
  /** In place of the server's clock. */
  readonly now?: string | undefined;
}

/** The same with what begins a transaction. */
export interface BeginCall extends AddCall {
  readonly nonce?: { readonly digest: string; readonly token: string; readonly retainMs: number } | undefined;
  readonly waitMs: number;
  readonly idleMs: number;
}

export function storedNonce(nonce: NonNullable<TransactionClaim["nonce"]>): NonNullable<BeginCall["nonce"]> {
  const digest = digestNonce(nonce.scope, nonce.nonce).toString("hex");
  return { digest, token: encodeText(nonce.token), retainMs: nonce.retainMs };
}

export function storedRow({ key, row }: NewRow): AddCall["keys"][number] {
  const { state, recovery, durationMs } = row;
  const [token = "", fingerprint = "", reason = ""] = [row.token, row.fingerprint, row.reason].map(
    encodeText,
  );
  return { key: encodeKey(key), state, token, fingerprint, reason, recovery, durationMs };
}

const now = "coalesce((asked.call ->> 'now')::timestamptz, clock_timestamp())";

/** Takes a {@link AddCall}, `$1` or the like. Gives the keys that it has added, as {@link addedOf} reads them. */
export function addStatement(names: TableNames, call: string): string {
  return `WITH asked AS MATERIALIZED (SELECT ${call}::jsonb AS call),
added AS (${insertion(names, "true")})
${given("true")}`;
}

/**
 * Takes a {@link BeginCall}: bounds the waits of the transaction, makes its commit durable, uses the nonce and adds the keys; no key where
 * the nonce was used before. What stands in the way of a key is for another statement, which sees what this one has waited for. `more`
 * is added to what it gives.
 */
export function beginStatement(names: TableNames, call: string, more: string): string {
  const isFresh = "(asked.call -> 'nonce' IS NULL OR EXISTS (SELECT FROM used))";
  const durable =
    "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END";
  return `WITH asked AS MATERIALIZED (
  SELECT given.call FROM (SELECT ${call}::jsonb AS call) AS given
  WHERE set_config('lock_timeout', given.call ->> 'waitMs', true) IS NOT NULL
    AND set_config('idle_in_transaction_session_timeout', given.call ->> 'idleMs', true) IS NOT NULL
    AND set_config('${savedDurability}', ${durable}, true) IS NOT NULL AND ${isDurable}),
used AS (
  INSERT INTO ${names.nonces} AS stored (digest, token, until_at)
  SELECT decode(asked.call #>> '{nonce,digest}', 'hex'), asked.call #>> '{nonce,token}',
    ${now} + ${milliseconds("(asked.call #>> '{nonce,retainMs}')")} FROM asked WHERE asked.call -> 'nonce' IS NOT NULL
  ON CONFLICT (digest) DO UPDATE SET token = excluded.token, until_at = greatest(stored.until_at, excluded.until_at)
  WHERE stored.token = excluded.token OR stored.until_at < (SELECT ${now} FROM asked) RETURNING 1),
added AS (${insertion(names, isFresh)})
${given(isFresh, more)}`;
}

function insertion({ idempotency }: TableNames, isWanted: string): string {
  const floor = `(SELECT pruned.fence + 1 FROM ${idempotency} AS pruned WHERE pruned.key = ${floorKey})`;
  return `
  INSERT INTO ${idempotency} AS kept (key, state, token, fence, fingerprint, reason, recovery, until_at, version)
  SELECT item ->> 'key', item ->> 'state', item ->> 'token', greatest(${microseconds(now)}, ${floor}),
    item ->> 'fingerprint', item ->> 'reason', item ->> 'recovery', ${now} + ${milliseconds("(item ->> 'durationMs')")}, 1
  FROM asked, jsonb_array_elements(asked.call -> 'keys') WITH ORDINALITY AS items (item, place)
  WHERE ${isWanted} ORDER BY place
  ON CONFLICT (key) DO NOTHING RETURNING kept.key`;
}

function given(isFresh: string, more = ""): string {
  return `SELECT ${isFresh} AS is_fresh, (SELECT coalesce(json_agg(added.key), '[]') FROM added)::text AS added${more} FROM asked`;
}

/** What either statement gives: whether the nonce is fresh, and which of the keys were added. */
export function addedOf(
  rows: readonly Row[],
  keys: readonly string[],
): { readonly isFresh: boolean; readonly added: Added; readonly id: string | undefined } {
  const { is_fresh: isFresh, added, id } = singleRow(rows);
  const stored: unknown = typeof added === "string" ? JSON.parse(added) : undefined;
  if (typeof isFresh !== "boolean" || !Array.isArray(stored))
    throw new TypeError("the PostgreSQL driver returned no text for a text");
  const names = new Set<unknown>(stored);
  return {
    isFresh,
    added: { keys: new Set(keys.filter((key) => names.has(encodeKey(key)))) },
    id: typeof id === "string" ? id : undefined,
  };
}
