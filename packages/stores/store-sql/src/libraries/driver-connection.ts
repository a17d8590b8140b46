import type { Database, SqlValue } from "@countersign/idempotency";
import { watchCommits, type Row } from "@countersign/idempotency/store";
import { changedAlone, changedRows, compound, compoundRows, rowList, rowsOf } from "./rows.ts";

export type Dialect = Database<unknown>["dialect"];

/** A connection of `pg` or `mysql2` inside an ORM: both take a callback. Unlike the ORM, it never rewrites the text. */
export interface DriverConnection {
  query(text: string, values: unknown, done: (error: unknown, result: unknown) => void): unknown;
}

/** Throws a TypeError on what has no `query`. */
export function assertDriverConnection(caller: string, value: unknown): asserts value is DriverConnection {
  if (typeof value === "object" && value !== null) {
    if (typeof Reflect.get(value, "query") === "function") return;
  }
  throw new TypeError(`${caller}: needs an open transaction, such as the one that the handler was given`);
}

export interface Statement {
  readonly text: string;
  /** Without these, several statements. */
  readonly values?: readonly SqlValue[];
}

/** Sends a statement on the driver's connection; rejects with the driver's error, or where a commit of `pg` is not confirmed. */
export async function sendOn(
  connection: DriverConnection,
  dialect: Dialect,
  statement: Statement,
): Promise<readonly Row[]> {
  const values = statement.values && driverValues(dialect, statement.values);
  const isCompound = dialect === "mysql" && values === undefined;
  const text = isCompound ? compound(statement.text) : statement.text;
  const send = () => answerOn(connection, text, values);
  const result = await (dialect === "postgresql" ? watchCommits(connection, send) : send());
  if (isCompound) return compoundRows("mysql2", result);
  if (dialect === "mysql") return Array.isArray(result) ? rowList("mysql2", result) : [];
  const all: readonly unknown[] = Array.isArray(result) ? result : [result];
  return all.flatMap((each) => rowsOf("pg", each));
}

/** Sends a statement on a connection of mysql2 that changes rows, by itself or within a transaction. Resolves to how many. */
export async function changeOn(
  connection: DriverConnection,
  { text, values = [] }: Statement,
  isWithin: boolean,
): Promise<number> {
  const header = await answerOn(connection, text, driverValues("mysql", values));
  if (!isWithin) return changedAlone("mysql2", header);
  return changedRows("mysql2", Reflect.get(Object(header), "affectedRows"));
}

function answerOn(connection: DriverConnection, text: string, values: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    connection.query(text, values, (error, answer) => {
      if (error) reject(error);
      else resolve(answer);
    });
  });
}

/** Where an ORM's pool lends the driver's connections, by Knex's names. */
export interface Lender {
  acquireConnection(): Promise<unknown>;
  releaseConnection(connection: unknown): unknown;
}

/** Sends on a connection that is lent for it. */
export async function onLent<T>(
  caller: string,
  lender: Lender,
  send: (connection: DriverConnection) => Promise<T>,
): Promise<T> {
  const connection = await lender.acquireConnection();
  try {
    assertDriverConnection(caller, connection);
    return await send(connection);
  } finally {
    await lender.releaseConnection(connection);
  }
}

/** mysql2 writes only a Buffer as bytes. */
export function driverValues(dialect: Dialect, values: readonly SqlValue[]): SqlValue[] {
  if (dialect === "postgresql") return [...values];
  return values.map((value) =>
    value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value,
  );
}

/** The dialect of a name that the library has for it. Throws a TypeError on one that is not in the list. */
export function dialectOf(caller: string, name: unknown, names: ReadonlyMap<unknown, Dialect>): Dialect {
  const dialect = names.get(name);
  if (dialect !== undefined) return dialect;
  const got = String(name);
  const reason = /sqlite|sqljs|libsql/i.test(got) ? `: ${onSqlite}` : "";
  throw new TypeError(`${caller}: needs one of ${[...names.keys()].join(", ")}, got ${got}${reason}`);
}

/** For messages. Across an await in an open transaction, other requests would write in it. */
export const onSqlite =
  "on SQLite transactions are synchronous: give createStores() a connection of libsql, better-sqlite3 or node:sqlite";
