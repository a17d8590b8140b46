// Rows made by the engine itself, as the stores write them. assertReadable() has the store say so.

const fingerprint = "x".repeat(43);

/** Keys that were claimed and then completed: the row of each is written twice, in no order of the keys, as payouts do. */
export async function addPostgresKeys(pool, count) {
  await pool.query(
    `INSERT INTO countersign_idempotency (key, state, token, fence, fingerprint, reason, recovery, until_at, version)
     SELECT 'payout:payout-' || gen_random_uuid() || '.funding-1.business-1', 'running', gen_random_uuid()::text,
       (extract(epoch FROM clock_timestamp())::float8 * 1000000)::bigint, $1, '', 'hold', clock_timestamp() + interval '30 seconds', 1 FROM generate_series(1, $2::int)`,
    [fingerprint, count],
  );
  await pool.query(
    `UPDATE countersign_idempotency SET version = version + 1, state = 'done', until_at = clock_timestamp() + interval '90 days' WHERE state = 'running'`,
  );
}

export async function addPostgresNonces(pool, count) {
  await pool.query(
    `INSERT INTO countersign_nonces (digest, token, until_at)
     SELECT sha256(gen_random_uuid()::text::bytea), gen_random_uuid()::text, clock_timestamp() + interval '150 seconds'
     FROM generate_series(1, $1::int)`,
    [count],
  );
}

const sqliteUuid = `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-' || hex(randomblob(2)) || '-' || hex(randomblob(2))
  || '-' || hex(randomblob(6)))`;
const sqliteCount = "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?)";

export function addSqliteKeys(database, count) {
  database
    .prepare(
      `${sqliteCount} INSERT INTO countersign_idempotency (key, state, token, fence, fingerprint, reason, recovery, until_ms, version)
       SELECT 'payout:payout-' || ${sqliteUuid} || '.funding-1.business-1', 'done', ${sqliteUuid}, 1, ?, '', 'hold',
         (unixepoch() + 90 * 86400) * 1000, 1 FROM counted`,
    )
    .run(count, fingerprint);
}

export function addSqliteNonces(database, count) {
  database
    .prepare(
      `${sqliteCount} INSERT INTO countersign_nonces (scope, nonce, token, until_ms)
       SELECT 'service-key-1', ${sqliteUuid}, ${sqliteUuid}, (unixepoch() + 150) * 1000 FROM counted`,
    )
    .run(count);
}

/** Throws unless the store takes a key that was made here for a paid one. */
export async function assertReadable(store, key) {
  const { status } = await store.claim(key, {
    token: "stranger",
    fingerprint,
    leaseMs: 1_000,
    recovery: "rerun",
  });
  if (status !== "done") throw new Error(`the store takes a row of the benchmark for ${status}`);
}
