DO $countersign$
DECLARE
  found integer;
  oldest_beside integer;
BEGIN
  -- One migration at a time: held until the transaction ends.
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('countersign "countersign"."countersign_schema"', 0));

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'countersign') THEN
    IF NOT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') THEN
      RAISE EXCEPTION 'the schema % is missing, and the role may not create it: have the owner of the database run CREATE SCHEMA % AUTHORIZATION %, or give schema: "public" if the role may create tables there', '"countersign"', '"countersign"', pg_catalog.quote_ident(current_user);
    END IF;
    -- Migrations of other tables may make it too.
    PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('countersign "countersign"', 0));
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'countersign') THEN
      CREATE SCHEMA "countersign";
    END IF;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_schema"')::oid AND relkind IN ('r', 'p')) THEN
    CREATE TABLE "countersign"."countersign_schema" (
      id integer PRIMARY KEY CHECK (id = 1),
      version integer NOT NULL,
      -- the oldest version whose processes may run beside those of this one
      oldest integer
    );
    INSERT INTO "countersign"."countersign_schema" (id, version, oldest) VALUES (1, 3, 3);
  END IF;

  SELECT version, oldest INTO STRICT found, oldest_beside FROM "countersign"."countersign_schema" WHERE id = 1;
  IF found > 3 AND oldest_beside <= 3 THEN
    -- A later release made them, and this one's processes may run beside its own.
    RETURN;
  END IF;
  IF found <> 3 THEN
    RAISE EXCEPTION 'the tables have schema version %, this release makes 3: %', found,
      CASE WHEN found > 3 THEN 'upgrade @countersign/store-postgres' ELSE 'no release made such tables' END;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_idempotency"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each idempotency key.
    CREATE TABLE "countersign"."countersign_idempotency" (
      key text COLLATE "C" PRIMARY KEY,
      -- free: released, kept for a day for its fence, or for as long as a done one for what an operator has decided
      state text COLLATE "C" NOT NULL CHECK (state IN ('running', 'held', 'done', 'free')),
      token text COLLATE "C" NOT NULL,
      fence bigint NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      reason text COLLATE "C" NOT NULL,
      -- what may follow once the lease has ended: rerun, if the next claim says so too
      recovery text COLLATE "C" NOT NULL CHECK (recovery IN ('hold', 'rerun')),
      -- end of the lease (running, held) or of what is remembered (done, free)
      until_at timestamptz NOT NULL,
      -- raised by every write
      version bigint NOT NULL,
      -- an operator's last decision, in JSON: the outcome, about which fence, when, by whom, why, and for what the key was held
      decision text COLLATE "C"
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
    CREATE INDEX "countersign_idempotency_until" ON "countersign"."countersign_idempotency" (until_at) WHERE state IN ('done', 'free');
    CREATE INDEX "countersign_idempotency_open" ON "countersign"."countersign_idempotency" (state, key) WHERE state IN ('running', 'held');
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_nonces"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each nonce that was seen.
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

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_answers"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each answer of a done key.
    CREATE TABLE "countersign"."countersign_answers" (
      -- of the attempt, not of the key: what never ended its key is never found
      token text COLLATE "C" PRIMARY KEY,
      answer bytea NOT NULL,
      until_at timestamptz NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.02);
    CREATE INDEX "countersign_answers_until" ON "countersign"."countersign_answers" (until_at);
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_lanes"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each entity, or task without one, that has open tasks; without one until a claim removes it.
    CREATE TABLE "countersign"."countersign_lanes" (
      -- SHA-256 of queue and lane
      digest bytea NOT NULL PRIMARY KEY,
      queue text COLLATE "C" NOT NULL,
      -- e and an entity, or t and the id of a task without one
      lane text COLLATE "C" NOT NULL,
      -- when a claim looks at it: it may be claimed, or the lease of the owned task may have ended
      due_us bigint NOT NULL,
      -- of the claim that owns a task of it, and the digest of that task
      token text COLLATE "C",
      task bytea,
      -- the highest that a task of it was given
      last_number bigint NOT NULL,
      -- raised by every write, from any number
      version bigint NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
    CREATE INDEX "countersign_lanes_due" ON "countersign"."countersign_lanes" (queue, due_us);
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_tasks"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each task. Times are microseconds since 1970.
    CREATE TABLE "countersign"."countersign_tasks" (
      -- SHA-256 of queue and id
      digest bytea NOT NULL PRIMARY KEY,
      queue text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      entity text COLLATE "C",
      lane bytea NOT NULL,
      -- the order of adding, exact within a lane; the time, or the next free number
      number bigint NOT NULL,
      state text COLLATE "C" CHECK (state IN ('open', 'dead', 'done')) NOT NULL,
      body text COLLATE "C" NOT NULL,
      attempts integer NOT NULL,
      -- JSON
      failures text COLLATE "C" NOT NULL,
      added_us bigint NOT NULL,
      -- not before
      due_us bigint NOT NULL,
      -- the claim that owns it, and the end of its lease: here, since whoever adds to its lane has that one locked
      token text COLLATE "C",
      leased_us bigint,
      -- of a dead or done task
      ended_us bigint,
      -- of a done one: until when it is remembered
      until_us bigint
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
    CREATE INDEX "countersign_tasks_heads" ON "countersign"."countersign_tasks" (lane, number) WHERE state = 'open';
    CREATE INDEX "countersign_tasks_states" ON "countersign"."countersign_tasks" (queue, state, number, digest);
    CREATE INDEX "countersign_tasks_pruning" ON "countersign"."countersign_tasks" (until_us) WHERE until_us IS NOT NULL;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_queues"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each queue that is paused.
    CREATE TABLE "countersign"."countersign_queues" (
      -- SHA-256 of the queue
      digest bytea NOT NULL PRIMARY KEY,
      queue text COLLATE "C" NOT NULL,
      paused_us bigint NOT NULL,
      paused_by text COLLATE "C" NOT NULL,
      note text COLLATE "C" NOT NULL
    );
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_newest"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each subject: the time of the newest event that was applied.
    CREATE TABLE "countersign"."countersign_newest" (
      -- SHA-256 of scope and subject
      digest bytea NOT NULL PRIMARY KEY,
      scope text COLLATE "C" NOT NULL,
      subject text COLLATE "C" NOT NULL,
      -- digits that sort as the nanoseconds since 1970 do
      newest_at text COLLATE "C" NOT NULL
    );
  END IF;
END
$countersign$;
