// The p99 of claims while another process prunes, against that without pruning, in alternating rounds.
// The median of the rounds: a checkpoint, or another program's work, makes the p99 of one of them, on either side.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";
import { startPostgres } from "./engines.mjs";
import { percentile, timeClaim } from "./latency.mjs";
import { addPostgresKeys, addSqliteKeys } from "./rows.mjs";
import { median } from "./statistics.mjs";

const rounds = 9;
const warmUpRounds = 1;
const roundMs = 1_500;
const everyMs = 5;
// More than the rounds with pruning can remove: no store removes more than 10,000 a second.
const expired = 200_000;

/** Four clients claim; the pruning is the stores' own, by its timer, on a pool of its own as another process has it. */
export async function postgresPruning() {
  const engine = await startPostgres();
  if (engine === undefined) return undefined;
  const { pool } = engine;
  const count = async () => Number((await pool.query(countExpired)).rows[0].count);
  try {
    await addPostgresKeys(pool, expired);
    await pool.query("UPDATE countersign_idempotency SET until_at = clock_timestamp() - interval '1 hour'");
    await pool.query("VACUUM ANALYZE countersign_idempotency");
    const startPruning = () => engine.stores({ pruneIntervalMs: 50 });
    const { idempotency } = engine.stores();
    return await comparePruning("Postgres", { store: idempotency, clients: 4, startPruning, count });
  } finally {
    await engine.close();
  }
}

/** One client: SQLite answers before the next one can ask. The pruning is in the same process, as it is there. */
export async function sqlitePruning() {
  const folder = mkdtempSync(path.join(tmpdir(), "bench-"));
  const database = new Database(path.join(folder, "platform.db"));
  const stores = createStores({ database, pruneIntervalMs: 0 });
  try {
    addSqliteKeys(database, expired);
    database.exec("UPDATE countersign_idempotency SET until_ms = (unixepoch() - 3600) * 1000");
    const startPruning = () => createStores({ database, pruneIntervalMs: 50 });
    const count = () => database.prepare(countExpired).get().count;
    return await comparePruning("SQLite", { store: stores.idempotency, clients: 1, startPruning, count });
  } finally {
    stores.close();
    database.close();
    rmSync(folder, { recursive: true });
  }
}

const countExpired = "SELECT count(*) AS count FROM countersign_idempotency WHERE state = 'done'";

async function comparePruning(engine, { store, clients, startPruning, count }) {
  const ratios = [];
  const before = await count();
  for (let round = 0; round < warmUpRounds + rounds; round++) {
    const quiet = await claimFor(store, clients);
    const pruning = startPruning();
    const pruned = await claimFor(store, clients);
    pruning.close();
    if (round >= warmUpRounds) ratios.push(percentile(pruned, 0.99) / percentile(quiet, 0.99));
  }
  const left = await count();
  if (left === 0 || left === before) throw new Error("the pruning did not run in every round");
  return [
    {
      name: `${engine}, p99 of claims, pruning / quiet`,
      ratio: median(ratios),
      target: "<= 2.00",
      met: (ratio) => ratio <= 2,
    },
  ];
}

// From when a claim was due, not from when its turn came: a batch that holds up the process counts for all who wait.
async function claimFor(store, clients) {
  const times = [];
  const startedAt = performance.now();
  const client = async (index) => {
    let dueAt = startedAt + (index * everyMs) / clients;
    for (; dueAt < startedAt + roundMs; dueAt += everyMs) {
      while (performance.now() < dueAt) await delay(dueAt - performance.now());
      await timeClaim(store);
      times.push(performance.now() - dueAt);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_none, index) => client(index)));
  return times;
}
