// How much room a million keys, and a million nonces, take: on the disk with all indexes, or in the memory of Redis.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";
import { startPostgres } from "./engines.mjs";
import {
  addPostgresKeys,
  addPostgresNonces,
  addSqliteKeys,
  addSqliteNonces,
  assertReadable,
} from "./rows.mjs";
import { megabytes } from "./sizes.mjs";

const million = 1_000_000;
// Between the batches the table is vacuumed, as autovacuum does when 2 % of it are dead.
const batch = 50_000;

/** The keys' table, after each of its rows has been written twice. */
export async function postgresGrowth() {
  const engine = await startPostgres();
  if (engine === undefined) return undefined;
  const { pool } = engine;
  const bytesOf = async (table) =>
    Number((await pool.query("SELECT pg_total_relation_size($1) AS bytes", [table])).rows[0].bytes);
  try {
    for (let added = 0; added < million; added += batch) {
      await addPostgresKeys(pool, batch);
      await pool.query("VACUUM countersign_idempotency");
    }
    await addPostgresNonces(pool, million);
    const { rows } = await pool.query("SELECT key FROM countersign_idempotency WHERE key <> '' LIMIT 1");
    await assertReadable(engine.stores().idempotency, rows[0].key);
    return [
      megabytes("Postgres, MB per million keys", await bytesOf("countersign_idempotency")),
      megabytes("Postgres, MB per million nonces", await bytesOf("countersign_nonces")),
    ];
  } finally {
    await engine.close();
  }
}

export async function sqliteGrowth() {
  const folder = mkdtempSync(path.join(tmpdir(), "bench-"));
  const database = new Database(path.join(folder, "platform.db"));
  const stores = createStores({ database, pruneIntervalMs: 0 });
  const bytes = () =>
    database.prepare("SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size").get()
      .bytes;
  try {
    const before = bytes();
    for (let added = 0; added < million; added += batch) addSqliteKeys(database, batch);
    const withKeys = bytes();
    for (let added = 0; added < million; added += batch) addSqliteNonces(database, batch);
    const { key } = database.prepare("SELECT key FROM countersign_idempotency LIMIT 1").get();
    await assertReadable(stores.idempotency, key);
    return [
      megabytes("SQLite, MB per million keys", withKeys - before),
      megabytes("SQLite, MB per million nonces", bytes() - withKeys),
    ];
  } finally {
    stores.close();
    database.close();
    rmSync(folder, { recursive: true });
  }
}
