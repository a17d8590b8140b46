import type { NonceClaim } from "@countersign/core";
import type { SqlValue } from "@countersign/idempotency";
import { encodeText, type NewRow, type Row } from "@countersign/idempotency/store";
import { isDurable } from "./durability.ts";
import type { KeyStatements } from "../keys/key-statements.ts";
import { nonceStatement } from "../keys/nonce-table.ts";
import { fragment, raw, type Sql } from "../sql/sql.ts";
import { equal } from "../sql/statements.ts";
import { dialect } from "./dialect.ts";
import { runSetting } from "./statement-parts.ts";
import type { TableNames } from "./table-names.ts";

/** The setting that keeps what `synchronous_commit` was when the transaction began. */
export const savedDurability = "countersign.synchronous_commit";

/** SQL: whether the transaction is the one that has begun this run. */
export function isOfRun(run: string): string {
  return `current_setting('${runSetting}', true) = ${inlined(run)}`;
}

/** Writes a value into a statement. */
export type ValueWriter = (value: SqlValue) => string;

/** Writes values as parameters, which `values` collects. */
export function parametersIn(values: SqlValue[]): ValueWriter {
  return (value) => `$${values.push(value)}`;
}

/** Writes values into a message that has no parameters. */
export const literal: ValueWriter = (value) => {
  if (typeof value === "string") return inlined(value);
  if (value instanceof Uint8Array) return `decode('${Buffer.from(value).toString("hex")}', 'hex')`;
  return value === null ? "NULL" : String(value);
};

/** A part of a statement with its values written into it. */
function withValues({ text, values }: Sql, write: ValueWriter): string {
  const left = values.values();
  return text.replaceAll("?", () => {
    const { done, value } = left.next();
    if (done === true) throw new TypeError("a statement has more places than values");
    return write(value);
  });
}

/** The text as SQL. What a setting of the server, or an encoding of the client, could read otherwise is in hexadecimal. */
export function inlined(text: string): string {
  return /^[\w :.+/=-]*$/.test(text)
    ? `'${text}'`
    : `convert_from(decode('${Buffer.from(text).toString("hex")}', 'hex'), 'UTF8')`;
}

/** Where rows go, and when. */
export interface Target {
  readonly names: TableNames;
  readonly sql: KeyStatements;
  readonly write: ValueWriter;
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

/** Adds the rows whose keys have none, and gives their keys. What stands in the way of the others is for another statement. */
function addStatement({ sql, write }: Target, rows: readonly NewRow[], condition = "true"): string {
  return withValues(sql.addAll(rows, raw(condition)), write);
}

/**
 * Statements for one message: they bound the waits of the transaction, make its commit durable, use the nonce and add the keys; no key where
 * the nonce was used before. {@link begunBy} reads what they give.
 */
export function beginScript(target: Target, call: BeginCall): readonly string[] {
  const { nonce, rows, id } = call;
  return [
    `SELECT ${nonce === undefined} AS is_fresh WHERE ${settings(call)}`,
    ...(nonce === undefined ? [] : [`${useNonce(target, nonce, "true")} RETURNING true AS is_fresh`]),
    ...(rows.length === 0 ? [] : [addStatement(target, rows, nonce && isUsed(target, nonce))]),
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
        : `${useNonce(target, nonce, "EXISTS (SELECT FROM settings)")} RETURNING 1`
    })`,
  ];
  const isFresh = "EXISTS (SELECT FROM used)";
  if (rows.length > 0) parts.push(`added AS (${addStatement(target, rows, isFresh)})`);
  const added = rows.length > 0 ? "\nUNION ALL SELECT NULL, NULL, added.added FROM added" : "";
  return `WITH ${parts.join(",\n")}
SELECT ${isFresh} AS is_fresh, ${id ?? "NULL::text"} AS id, NULL::text AS added${added}`;
}

/** What either gives, besides the keys that were added: whether the nonce is fresh. */
export function begunBy(rows: readonly Row[]): {
  readonly isFresh: boolean;
  readonly id: string | undefined;
} {
  const isFresh = rows.map((row) => row["is_fresh"]);
  if (!isFresh.some((value) => typeof value === "boolean"))
    throw new TypeError("the PostgreSQL driver returned no boolean for a boolean");
  const id = rows.map((row) => row["id"]).find((value) => typeof value === "string");
  return { isFresh: isFresh.includes(true), id };
}

function settings({ run, waitMs, idleMs }: BeginCall): string {
  const durable =
    "CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END";
  return `set_config('lock_timeout', '${waitMs}', true) IS NOT NULL
  AND set_config('idle_in_transaction_session_timeout', '${idleMs}', true) IS NOT NULL
  AND set_config('${runSetting}', ${inlined(run)}, true) IS NOT NULL
  AND set_config('${savedDurability}', ${durable}, true) IS NOT NULL AND ${isDurable}`;
}

function useNonce(target: Target, nonce: NonceClaim, condition: string): string {
  const { names, write } = target;
  return withValues(nonceStatement({ dialect, names }, nonce, raw(nowOf(target)), raw(condition)), write);
}

function isUsed({ names, write }: Target, nonce: NonceClaim): string {
  const own = { ...dialect.ids.nonce(nonce), token: dialect.text(encodeText(nonce.token)) };
  return withValues(
    fragment`EXISTS (SELECT FROM ${raw(names.nonces)} AS used WHERE ${equal(own, "used.")})`,
    write,
  );
}

/** The time, by the server's clock where no other is given. */
export function nowOf({ now }: { readonly now?: string | undefined }): string {
  return now === undefined ? "clock_timestamp()" : `${inlined(now)}::timestamptz`;
}
