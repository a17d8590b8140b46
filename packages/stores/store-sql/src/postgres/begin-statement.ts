import type { NonceClaim } from "@countersign/core";
import { encodeText, type Added, type NewRow, type Row } from "@countersign/idempotency/store";
import { isDurable } from "./durability.ts";
import { floorKey, microseconds, milliseconds, runSetting } from "./statement-parts.ts";
import { digestNonce, encodeKey } from "./stored-key.ts";
import type { TableNames } from "./table-names.ts";

/** The setting that keeps what `synchronous_commit` was when the transaction began. */
export const savedDurability = "countersign.synchronous_commit";

/** SQL: whether the transaction is the one that has begun this run. */
export function isOfRun(run: string): string {
  return `current_setting('${runSetting}', true) = ${inlined(run)}`;
}

/** Writes a value into a statement. */
export type Place = (value: string | number) => string;

/** Writes values as parameters, which `values` collects. */
export function parametersIn(values: (string | number)[]): Place {
  return (value) => `$${values.push(value)}`;
}

/** Writes values into a message that has no parameters. */
export const literal: Place = (value) => (typeof value === "number" ? String(value) : inlined(value));

/** The text as SQL. What a setting of the server, or an encoding of the client, could read otherwise is in hexadecimal. */
export function inlined(text: string): string {
  return /^[\w :.+/=-]*$/.test(text)
    ? `'${text}'`
    : `convert_from(decode('${Buffer.from(text).toString("hex")}', 'hex'), 'UTF8')`;
}

/** Where rows go, and when. */
export interface Target {
  readonly names: TableNames;
  readonly place: Place;
  /** In place of the server's clock. */
  readonly now: string | undefined;
}

export interface BeginCall {
  /** A random name of this run of the transaction. */
  readonly run: string;
  readonly nonce: NonceClaim | undefined;
  /** In the order in which they are added. */
  readonly rows: readonly NewRow[];
  /** Whole milliseconds. */
  readonly waitMs: number;
  readonly idleMs: number;
  /** Whether the answer has to have the transaction's id, as this SQL gives it. */
  readonly id: string | undefined;
}

/**
 * Adds the rows whose keys have none, and gives their keys. What stands in the way of the others is for another statement, which sees what this one
 * has waited for.
 */
export function addStatement(target: Target, rows: readonly NewRow[], condition = "true"): string {
  const { names, place } = target;
  const now = nowOf(target);
  const floor = `(SELECT pruned.fence + 1 FROM ${names.idempotency} AS pruned WHERE pruned.key = ${floorKey})`;
  const added = rows.map(({ key, row }) => {
    const { state, token, fingerprint, reason, recovery, durationMs } = row;
    // In the order in which they stand: some libraries have no numbers for parameters.
    const texts = [encodeKey(key), ...[token, fingerprint, reason].map(encodeText)].map(place).join(", ");
    const until = `${now} + ${milliseconds(place(durationMs))}`;
    return `(${texts}, '${state}', '${recovery}', greatest(${microseconds(now)}, ${floor}), ${until}, 1)`;
  });
  return `INSERT INTO ${names.idempotency} AS kept (key, token, fingerprint, reason, state, recovery, fence, until_at, version)
SELECT * FROM (VALUES ${added.join(",\n")}) AS item WHERE ${condition}
ON CONFLICT (key) DO NOTHING RETURNING kept.key AS added`;
}

/**
 * Statements for one message: they bound the waits of the transaction, make its commit durable, use the nonce and add the keys; no key where
 * the nonce was used before. {@link begunBy} reads what they give.
 */
export function beginScript(target: Target, call: BeginCall): readonly string[] {
  const { nonce, rows, id } = call;
  const used = nonce && stored(nonce, target);
  return [
    `SELECT ${used === undefined} AS is_fresh WHERE ${settings(call)}`,
    ...(used === undefined ? [] : [`${useNonce(target, used, "true")} RETURNING true AS is_fresh`]),
    ...(rows.length === 0 ? [] : [addStatement(target, rows, used && isUsed(target, used))]),
    ...(id === undefined ? [] : [`SELECT ${id} AS id`]),
  ];
}

/** The same as one statement. */
export function beginStatement(target: Target, call: BeginCall): string {
  const { nonce, rows, id } = call;
  const parts = [
    `settings AS MATERIALIZED (SELECT WHERE ${settings(call)})`,
    `used AS (${
      nonce === undefined
        ? "SELECT FROM settings"
        : `${useNonce(target, stored(nonce, target), "EXISTS (SELECT FROM settings)")} RETURNING 1`
    })`,
  ];
  const isFresh = "EXISTS (SELECT FROM used)";
  if (rows.length > 0) parts.push(`added AS (${addStatement(target, rows, isFresh)})`);
  const added = rows.length > 0 ? "\nUNION ALL SELECT NULL, NULL, added.added FROM added" : "";
  return `WITH ${parts.join(",\n")}
SELECT ${isFresh} AS is_fresh, ${id ?? "NULL::text"} AS id, NULL::text AS added${added}`;
}

/** What either gives: whether the nonce is fresh, and which of the keys were added. */
export function begunBy(
  rows: readonly Row[],
  keys: readonly string[],
): { readonly isFresh: boolean; readonly added: Added; readonly id: string | undefined } {
  const isFresh = rows.map((row) => row["is_fresh"]);
  if (!isFresh.some((value) => typeof value === "boolean"))
    throw new TypeError("the PostgreSQL driver returned no boolean for a boolean");
  const id = rows.map((row) => row["id"]).find((value) => typeof value === "string");
  return { isFresh: isFresh.includes(true), added: addedOf(rows, keys), id };
}

/** Which of the keys {@link addStatement} has added. */
export function addedOf(rows: readonly Row[], keys: readonly string[]): Added {
  const added = rows.map((row) => row["added"]).filter((value) => value !== undefined && value !== null);
  if (added.some((value) => typeof value !== "string"))
    throw new TypeError("the PostgreSQL driver returned no text for a text");
  const names = new Set(added);
  return { keys: new Set(keys.filter((key) => names.has(encodeKey(key)))) };
}

function settings({ run, waitMs, idleMs }: BeginCall): string {
  const durable =
    "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END";
  return `set_config('lock_timeout', '${waitMs}', true) IS NOT NULL
  AND set_config('idle_in_transaction_session_timeout', '${idleMs}', true) IS NOT NULL
  AND set_config('${runSetting}', ${inlined(run)}, true) IS NOT NULL
  AND set_config('${savedDurability}', ${durable}, true) IS NOT NULL AND ${isDurable}`;
}

interface StoredNonce {
  readonly digest: string;
  readonly token: string;
  readonly retainMs: string;
}

function stored({ scope, nonce, token, retainMs }: NonceClaim, { place }: Target): StoredNonce {
  return {
    digest: `decode(${place(digestNonce(scope, nonce).toString("hex"))}, 'hex')`,
    token: place(encodeText(token)),
    retainMs: place(retainMs),
  };
}

function useNonce(target: Target, { digest, token, retainMs }: StoredNonce, condition: string): string {
  const now = nowOf(target);
  return `INSERT INTO ${target.names.nonces} AS stored (digest, token, until_at)
SELECT ${digest}, ${token}, ${now} + ${milliseconds(retainMs)} WHERE ${condition}
ON CONFLICT (digest) DO UPDATE SET token = excluded.token, until_at = greatest(stored.until_at, excluded.until_at)
WHERE stored.token = excluded.token OR stored.until_at < ${now}`;
}

function isUsed({ names }: Target, { digest, token }: StoredNonce): string {
  return `EXISTS (SELECT FROM ${names.nonces} AS used WHERE used.digest = ${digest} AND used.token = ${token})`;
}

function nowOf({ now }: Target): string {
  return now === undefined ? "clock_timestamp()" : `${inlined(now)}::timestamptz`;
}
