DO $countersign$
DECLARE
  found integer;
BEGIN
  -- One migration at a time: held until the transaction ends.
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('countersign "countersign"."countersign_schema"', 0));

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'countersign') THEN
    CREATE SCHEMA "countersign";
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_schema"')::oid AND relkind IN ('r', 'p')) THEN
    CREATE TABLE "countersign"."countersign_schema" (
      id integer PRIMARY KEY CHECK (id = 1),
      version integer NOT NULL
    );
    INSERT INTO "countersign"."countersign_schema" (id, version) VALUES (1, 2);
  END IF;

  SELECT version INTO STRICT found FROM "countersign"."countersign_schema" WHERE id = 1;
  IF found > 2 THEN
    RAISE EXCEPTION 'the tables have schema version %, newer than 2: upgrade @countersign/store-postgres', found;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_idempotency"')::oid AND relkind IN ('r', 'p')) THEN
    CREATE TABLE "countersign"."countersign_idempotency" (
      key text COLLATE "C" PRIMARY KEY,
      -- free: released, kept for a day for its fence
      state text COLLATE "C" NOT NULL CHECK (state IN ('run', 'held', 'done', 'free')),
      token text COLLATE "C" NOT NULL,
      fence bigint NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      reason text COLLATE "C" NOT NULL,
      -- end of the lease (run, held) or of what is remembered (done, free)
      until_at timestamptz NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
    CREATE INDEX "countersign_idempotency_until" ON "countersign"."countersign_idempotency" (until_at) WHERE state IN ('done', 'free');
    CREATE INDEX "countersign_idempotency_open" ON "countersign"."countersign_idempotency" (state, key) WHERE state IN ('run', 'held');
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_nonces"')::oid AND relkind IN ('r', 'p')) THEN
    CREATE TABLE "countersign"."countersign_nonces" (
      -- SHA-256 of scope and nonce
      digest bytea PRIMARY KEY,
      token text COLLATE "C" NOT NULL,
      until_at timestamptz NOT NULL
    )
    -- Every row is deleted minutes after it came: what is dead must go before it outweighs what lives.
    WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
    CREATE INDEX "countersign_nonces_until" ON "countersign"."countersign_nonces" (until_at);
  END IF;

  IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_fences"')::oid AND relkind IN ('S')) THEN
    -- Of version 1. Fences are times now, above all that it gave; a process of the release before fails without it.
    DROP SEQUENCE "countersign"."countersign_fences";
  END IF;

  IF found < 2 THEN
    UPDATE "countersign"."countersign_schema" SET version = 2 WHERE id = 1;
  END IF;
END
$countersign$;
