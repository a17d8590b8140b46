// npm run bench -- --large: what a claim takes among ten million keys, against an empty table. Needs some 5 GB of disk for a while.
import { startPostgres } from "./engines.mjs";
import { percentile, timeClaim } from "./latency.mjs";
import { addPostgresKeys, assertReadable } from "./rows.mjs";

const millions = 10;
const rounds = 20;
const perRound = 200;

/** Both tables are on one server; rounds alternate between them, one claim at a time. */
export async function postgresLarge() {
  const engine = await startPostgres();
  if (engine === undefined) return undefined;
  const { pool } = engine;
  try {
    await fill(pool);
    const large = engine.stores().idempotency;
    const { rows } = await pool.query("SELECT key FROM countersign_idempotency OFFSET 1000000 LIMIT 1");
    await assertReadable(large, rows[0].key);
    const empty = (await engine.storesIn("empty")).idempotency;
    const times = { large: [], empty: [] };
    for (let round = 0; round < rounds; round++) {
      for (let claim = 0; claim < perRound; claim++) {
        const [small, big] = [await timeClaim(empty), await timeClaim(large)];
        if (round === 0) continue;
        times.empty.push(small);
        times.large.push(big);
      }
    }
    return [0.5, 0.99].map((share) => ({
      name: `Postgres, claim at 10 M keys / empty, p${share * 100}`,
      ratio: percentile(times.large, share) / percentile(times.empty, share),
      target: share === 0.5 ? "<= 1.50" : "reported",
      met: (ratio) => share !== 0.5 || ratio <= 1.5,
    }));
  } finally {
    await engine.close();
  }
}

// The indexes are built when the rows are there: the same ones, and minutes sooner.
async function fill(pool) {
  const { rows } = await pool.query(`
    SELECT indexdef FROM pg_indexes WHERE tablename = 'countersign_idempotency' AND indexname NOT LIKE '%pkey'`);
  for (const name of ["until", "open"]) await pool.query(`DROP INDEX countersign_idempotency_${name}`);
  await pool.query("ALTER TABLE countersign_idempotency DROP CONSTRAINT countersign_idempotency_pkey");
  for (let million = 0; million < millions; million++) await addPostgresKeys(pool, 1_000_000);
  await pool.query("ALTER TABLE countersign_idempotency ADD PRIMARY KEY (key)");
  for (const { indexdef } of rows) await pool.query(indexdef);
  await pool.query("VACUUM ANALYZE countersign_idempotency");
  await pool.query("CHECKPOINT");
}
