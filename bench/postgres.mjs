// A claim and a completion, by the store and by hand, in short alternating rounds on one pool.
import { randomUUID } from "node:crypto";
import { startPostgres } from "./engines.mjs";
import { median } from "./statistics.mjs";

const rounds = 11;
const warmUpRounds = 2;
const perRound = 200;
const leaseMs = 30_000;
const fingerprint = "x".repeat(43);

/**
 * All sides read the key, claim it, and write done; two durable commits. The store reads and claims in one statement.
 * "By hand" is what somebody writes who trusts his own input, on a table of the same columns and indexes: no lock_timeout, no
 * check of the arguments or of the transaction, fences by adding one. "Verbatim" sends the very texts of the store, as the driver
 * saw them, with other keys and tokens: what is left of the difference is the store's JavaScript.
 */
export async function postgresRatios() {
  const engine = await startPostgres();
  if (engine === undefined) return undefined;
  try {
    const { pool } = engine;
    const { idempotency } = engine.stores();
    await createHandTable(pool);
    const byStore = (key) => payByStore(idempotency, key);
    const byHand = (key) => payByHand(pool, key);
    const verbatim = await payVerbatim(engine);
    const results = [];
    for (const { title, comparator, loops } of [
      { title: "by hand, one loop", comparator: byHand, loops: 1 },
      { title: "by hand, 8 loops", comparator: byHand, loops: 8 },
      { title: "verbatim, one loop", comparator: verbatim, loops: 1 },
      { title: "verbatim, 8 loops", comparator: verbatim, loops: 8 },
    ]) {
      results.push({
        name: `Postgres store / ${title}`,
        ratio: await compare(byStore, comparator, loops),
        target: ">= 0.80",
        met: (ratio) => ratio >= 0.8,
      });
    }
    const lease = leaseSteps(engine.stores());
    const prepared = leaseSteps(engine.stores({ prepare: true }));
    results.push({
      name: "Postgres, lease mode, prepared / not",
      ratio: await compare(prepared, lease, 1),
      target: "reported",
      met: () => true,
    });
    return results;
  } finally {
    await engine.close();
  }
}

async function compare(byStore, comparator, loops) {
  const ratios = [];
  for (let round = 0; round < warmUpRounds + rounds; round++) {
    // Who goes first alternates too: a checkpoint or a vacuum finds either side as often.
    const sides = round % 2 === 0 ? [comparator, byStore] : [byStore, comparator];
    const times = new Map();
    for (const side of sides) times.set(side, await timed(side, loops));
    if (round >= warmUpRounds) ratios.push(times.get(comparator) / times.get(byStore));
  }
  return median(ratios);
}

async function timed(pay, loops) {
  const keys = Array.from({ length: perRound }, () => `payout:payout-${randomUUID()}.funding-1.business-1`);
  const startedAt = performance.now();
  const loop = async () => {
    for (let key = keys.pop(); key !== undefined; key = keys.pop()) await pay(key);
  };
  await Promise.all(Array.from({ length: loops }, loop));
  return performance.now() - startedAt;
}

async function payByStore(store, key) {
  const token = randomUUID();
  const claimed = await store.claim(key, { token, fingerprint, leaseMs, recovery: "rerun" });
  if (claimed.status !== "acquired") throw new Error("a fresh key was not acquired");
  if ((await store.complete(key, token)) !== "ok") throw new Error("the key was lost");
}

/** Claims a nonce and a key, and completes it: three statements. */
function leaseSteps({ nonces, idempotency }) {
  return async (key) => {
    const token = randomUUID();
    await nonces.claim({ scope: "bench", nonce: token, token, retainMs: 600_000 });
    const { status } = await idempotency.claim(key, { token, fingerprint, leaseMs, recovery: "rerun" });
    if (status !== "acquired" || (await idempotency.complete(key, token)) !== "ok") throw new Error(status);
  };
}

async function payByHand(pool, key) {
  const token = randomUUID();
  const seen = await pool.query("SELECT state, token, fingerprint, until_at FROM by_hand WHERE key = $1", [
    key,
  ]);
  if (seen.rows.length > 0) throw new Error("a fresh key was there");
  const claimed = await pool.query(
    `INSERT INTO by_hand AS kept (key, state, token, fence, fingerprint, reason, until_at)
     VALUES ($1, 'run', $2, 1, $3, '', clock_timestamp() + $4 * interval '1 millisecond')
     ON CONFLICT (key) DO UPDATE SET token = excluded.token, fence = kept.fence + 1, until_at = excluded.until_at
     WHERE kept.state = 'run' AND kept.until_at <= clock_timestamp() RETURNING fence`,
    [key, token, fingerprint, leaseMs],
  );
  if (claimed.rows.length === 0) throw new Error("a fresh key was not acquired");
  const { rowCount } = await pool.query(
    `UPDATE by_hand SET state = 'done', until_at = clock_timestamp() + interval '90 days'
     WHERE key = $1 AND token = $2 AND state = 'run'`,
    [key, token],
  );
  if (rowCount !== 1) throw new Error("the key was lost");
}

/** A function that sends what the store has sent for one key, for another one. */
async function payVerbatim({ pool, stores }) {
  const key = "payout:captured";
  const token = randomUUID();
  const sent = [];
  const { idempotency } = stores({ pool: capture(pool, sent) });
  // The first call also looks at the server.
  await idempotency.read(key);
  sent.length = 0;
  await idempotency.claim(key, { token, fingerprint, leaseMs, recovery: "rerun" });
  await idempotency.complete(key, token);

  return async (otherKey) => {
    const otherToken = randomUUID();
    const renamed = (value) => (value === key ? otherKey : value === token ? otherToken : value);
    for (const { text, values } of sent) await pool.query(text, values?.map(renamed));
  };
}

/** Sends to the target, and keeps what it sent. */
function capture(target, sent) {
  return {
    query(text, values) {
      sent.push({ text, values });
      return target.query(text, values);
    },
  };
}

async function createHandTable(pool) {
  await pool.query(`
    CREATE TABLE by_hand (key text COLLATE "C" PRIMARY KEY, state text NOT NULL, token text NOT NULL, fence bigint NOT NULL,
      fingerprint text NOT NULL, reason text NOT NULL, until_at timestamptz NOT NULL);
    CREATE INDEX ON by_hand (until_at) WHERE state IN ('done', 'free');
    CREATE INDEX ON by_hand (state, key) WHERE state IN ('run', 'held')`);
}
