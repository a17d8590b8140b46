import { randomUUID } from "node:crypto";
import { transactionOwner } from "@countersign/idempotency-guard/door";
import type { AnswerStore, Database, TransactionStores } from "@countersign/idempotency";
import { createMysqlAnswers, createMysqlStores, migrateMysql } from "@countersign/store-mysql";
import {
  createPostgresAnswers,
  createPostgresStores,
  migratePostgres,
  migratePostgresAnswers,
} from "@countersign/store-postgres";
import type { WorkStore } from "@countersign/work";
import { isolatedName } from "@countersign/test-support/servers/engines.ts";
import { Pool } from "pg";
import { servers } from "./row.ts";

/** Pays once with a nonce of its own; resolves to the status, or the refusal's code. */
export function payerOn<Tx>(
  stores: TransactionStores<Tx>,
  handler: (tx: Tx, key: string) => unknown,
  times: { readonly idleTimeoutMs?: number; readonly waitMs?: number } = {},
) {
  const { pay } = transactionOwner(stores, { scope: "payments", waitMs: 5_000, ...times });
  return async (key: string, nonce: string = randomUUID()): Promise<unknown> => {
    const claim = { scope: "s", nonce, token: randomUUID(), retainMs: 60_000 };
    const deferred = { claim, assertTimely() {}, replayed: () => codeError("nonce-replayed") };
    try {
      const attempt = { key, fingerprint: () => "f", nonce: deferred };
      const connected = <T>(work: (left: AbortSignal) => Promise<T>) => work(new AbortController().signal);
      return (await pay({}, attempt, connected, (tx) => handler(tx, key))).status;
    } catch (error) {
      return (error as { code?: unknown }).code ?? (error as Error).message;
    }
  };
}

export type OpenStores<Tx> = TransactionStores<Tx> & {
  readonly work?: WorkStore<Tx>;
  readonly answers: AnswerStore;
  close(): Promise<void>;
};

/** Stores on tables of this test's own, which go with them. */
export async function openStores<Tx>(database: Database<Tx>): Promise<OpenStores<Tx>> {
  const name = isolatedName("payments");
  if (database.dialect === "mysql") {
    await migrateMysql(database, { table: name });
    const options = { database, table: name, pruneIntervalMs: 0 };
    const stores = createMysqlStores(options);
    const answers = createMysqlAnswers(options);
    const suffixes = ["idempotency", "nonces", "schema", "answers", "lanes", "tasks", "queues", "newest"];
    const tables = suffixes.map((suffix) => `${name}_${suffix}`);
    return {
      ...stores,
      answers,
      async close() {
        stores.close();
        await answers.close();
        await database.alone(`DROP TABLE IF EXISTS ${tables.join(", ")}`, []);
      },
    };
  }
  const pool = new Pool({ connectionString: servers.postgresql });
  await migratePostgres(pool, { schema: name });
  await migratePostgresAnswers(pool, { schema: name });
  await pool.end();
  const options = { database, schema: name, pruneIntervalMs: 0 };
  const stores = createPostgresStores(options);
  const answers = createPostgresAnswers(options);
  return {
    ...stores,
    answers,
    async close() {
      stores.close();
      await answers.close();
      await database.alone(`DROP SCHEMA ${name} CASCADE`, []);
    },
  };
}

function codeError(code: string): Error {
  return Object.assign(new Error(code), { code });
}
