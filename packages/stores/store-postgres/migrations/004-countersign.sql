DO $countersign$
DECLARE
  found integer;
  oldest_beside integer;
BEGIN
  -- One migration at a time: held until the transaction ends.
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('countersign "countersign"."countersign_schema"', 0));

  DECLARE
    moves CONSTANT text := (SELECT 'CREATE SCHEMA IF NOT EXISTS "countersign"' || pg_catalog.string_agg(pg_catalog.format('; ALTER TABLE "public".%I SET SCHEMA "countersign"', c.relname), '' ORDER BY c.relname) || '; DROP FUNCTION IF EXISTS "public"."countersign_begin"(text)'
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND c.relname IN ('countersign_idempotency', 'countersign_nonces', 'countersign_answers', 'countersign_schema'));
  BEGIN
    IF moves IS NOT NULL THEN
      RAISE EXCEPTION '%', 'tables of this prefix stand in the schema public, and others would not know their paid keys; keep them with schema: "public" (--schema public), or stop the processes that use them there and run: ' || moves || '; then countersign migrate. If they are of another platform, give schema: "countersign"';
    END IF;
  END;
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
    INSERT INTO "countersign"."countersign_schema" (id, version, oldest) VALUES (1, 4, 3);
  END IF;

  SELECT version, (pg_catalog.to_jsonb(kept) ->> 'oldest')::integer INTO STRICT found, oldest_beside FROM "countersign"."countersign_schema" AS kept WHERE id = 1;
  IF found > 4 AND oldest_beside <= 4 THEN
    -- Of a later release, beside whose processes this one's may run.
    RETURN;
  END IF;
  IF found > 4 THEN
    RAISE EXCEPTION 'the tables have schema version %, newer than 4: upgrade @countersign/store-postgres', found;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_idempotency"')::oid AND relkind IN ('r', 'p')) THEN
    CREATE TABLE "countersign"."countersign_idempotency" (
      key text COLLATE "C" PRIMARY KEY,
      -- free: released, kept for a day for its fence, or for as long as a done one for what an operator has decided
      state text COLLATE "C" NOT NULL CHECK (state IN ('run', 'held', 'done', 'free')),
      token text COLLATE "C" NOT NULL,
      fence bigint NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      reason text COLLATE "C" NOT NULL,
      -- end of the lease (run, held) or of what is remembered (done, free)
      until_at timestamptz NOT NULL,
      -- an operator's last decision: done or released, about which fence, when, by whom, why, and for what the key was held
      decision text COLLATE "C",
      decision_fence bigint,
      decision_at timestamptz,
      decision_by text COLLATE "C",
      decision_note text COLLATE "C",
      decision_reason text COLLATE "C",
      reopened_at timestamptz,
      reopened_by text COLLATE "C",
      reopened_note text COLLATE "C"
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
    CREATE INDEX "countersign_idempotency_until" ON "countersign"."countersign_idempotency" (until_at) WHERE state IN ('done', 'free');
    CREATE INDEX "countersign_idempotency_open" ON "countersign"."countersign_idempotency" (state, key) WHERE state IN ('run', 'held');
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass('"countersign"."countersign_idempotency"')::oid AND attname = 'decision' AND NOT attisdropped) THEN
    -- Of version 3: an operator's last decision. Waits for open transactions, and claims wait behind it.
    ALTER TABLE "countersign"."countersign_idempotency"
      ADD COLUMN decision text COLLATE "C",
      ADD COLUMN decision_fence bigint,
      ADD COLUMN decision_at timestamptz,
      ADD COLUMN decision_by text COLLATE "C",
      ADD COLUMN decision_note text COLLATE "C",
      ADD COLUMN decision_reason text COLLATE "C",
      ADD COLUMN reopened_at timestamptz,
      ADD COLUMN reopened_by text COLLATE "C",
      ADD COLUMN reopened_note text COLLATE "C";
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

  IF found < 4 OR NOT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid = pg_catalog.to_regprocedure('"countersign"."countersign_begin"(text)')::oid AND pg_catalog.strpos(prosrc, '"countersign"."countersign_idempotency"') > 0) THEN
    -- Of version 4: begins a payment's transaction.
    CREATE OR REPLACE FUNCTION "countersign"."countersign_begin"(claim text) RETURNS text
    LANGUAGE plpgsql VOLATILE AS $begin$
    DECLARE
      asked CONSTANT jsonb := claim::jsonb;
      clock CONSTANT timestamptz := (asked ->> 'now')::timestamptz;
      keep_for CONSTANT interval := (asked ->> 'retentionMs')::float8 * interval '1 millisecond';
      holds CONSTANT boolean := (asked ->> 'holds')::boolean;
      held_for CONSTANT text := coalesce(asked ->> 'heldFor', '');
      goal CONSTANT text := CASE WHEN held_for = '' THEN 'done' ELSE 'held' END;
      now_at timestamptz;
      item jsonb;
      wanted_key text;
      wanted_token text;
      wanted_print text;
      found_key record;
      answer jsonb;
      answers jsonb[] := '{}';
    BEGIN
      PERFORM set_config('lock_timeout', asked ->> 'waitMs', true);
      PERFORM set_config('idle_in_transaction_session_timeout', asked ->> 'idleMs', true);
      -- A commit that a crash undoes would let a second payment in.
      IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
      END IF;

      IF asked -> 'nonce' IS NOT NULL THEN
        INSERT INTO "countersign"."countersign_nonces" AS stored (digest, token, until_at)
        VALUES (decode(asked #>> '{nonce,digest}', 'hex'), asked #>> '{nonce,token}',
          coalesce(clock, clock_timestamp()) + (asked #>> '{nonce,retainMs}')::float8 * interval '1 millisecond')
        ON CONFLICT (digest) DO UPDATE SET token = excluded.token, until_at = greatest(stored.until_at, excluded.until_at)
        WHERE stored.token = excluded.token OR stored.until_at < coalesce(clock, clock_timestamp());
        IF NOT FOUND THEN
          RETURN '{"nonce": "seen", "keys": []}';
        END IF;
      END IF;

      FOR place IN 1..jsonb_array_length(asked -> 'keys') LOOP
        item := asked -> 'keys' -> (place - 1);
        wanted_key := item ->> 'key';
        wanted_token := item ->> 'token';
        wanted_print := item ->> 'fingerprint';
        answer := NULL;
        FOR attempt IN 1..3 LOOP
          now_at := coalesce(clock, clock_timestamp());
          -- Most keys are new. Of one that is there this locks nothing, and waits for no duplicate of a key that is done.
          INSERT INTO "countersign"."countersign_idempotency" (key, state, token, fence, fingerprint, reason, until_at)
          VALUES (wanted_key, goal, wanted_token, greatest(round(extract(epoch FROM now_at)::float8 * 1000000::float8)::bigint,
            (SELECT pruned.fence + 1 FROM "countersign"."countersign_idempotency" AS pruned WHERE pruned.key = '')),
            wanted_print, held_for, now_at + keep_for)
          ON CONFLICT (key) DO NOTHING;
          IF FOUND THEN
            answer := '{"status": "begun"}';
            EXIT;
          END IF;
          SELECT stored.state, stored.token, stored.fingerprint, stored.reason, stored.until_at INTO found_key
          FROM "countersign"."countersign_idempotency" AS stored WHERE stored.key = wanted_key;
          -- After the wait.
          now_at := coalesce(clock, clock_timestamp());
          -- Removed meanwhile.
          CONTINUE WHEN found_key.state IS NULL;
          IF found_key.state = 'free'
            OR (found_key.state IN ('run', 'done') AND found_key.until_at <= now_at)
            OR (held_for <> '' AND found_key.state = 'done' AND found_key.token = wanted_token) THEN
            UPDATE "countersign"."countersign_idempotency" AS stored SET
              state = CASE WHEN holds AND stored.state = 'run' THEN 'held' ELSE goal END,
              token = CASE WHEN holds AND stored.state = 'run' THEN stored.token ELSE wanted_token END,
              fence = CASE WHEN holds AND stored.state = 'run' THEN stored.fence ELSE greatest(stored.fence + 1, round(extract(epoch FROM now_at)::float8 * 1000000::float8)::bigint) END,
              fingerprint = CASE WHEN holds AND stored.state = 'run' THEN stored.fingerprint ELSE wanted_print END,
              reason = CASE WHEN holds AND stored.state = 'run' THEN 'lease-expired' ELSE held_for END,
              until_at = CASE WHEN holds AND stored.state = 'run' THEN stored.until_at ELSE now_at + keep_for END,
              -- A row that is over, and not yet pruned, keeps no decision.
              decision = CASE WHEN stored.state IN ('done', 'free') AND stored.until_at <= now_at THEN NULL ELSE stored.decision END
            WHERE stored.key = wanted_key AND (stored.state = 'free'
            OR (stored.state IN ('run', 'done') AND stored.until_at <= now_at)
            OR (held_for <> '' AND stored.state = 'done' AND stored.token = wanted_token))
            RETURNING CASE WHEN stored.token = wanted_token THEN '{"status": "begun"}'::jsonb
              ELSE jsonb_build_object('status', 'held', 'fingerprint', stored.fingerprint, 'reason', stored.reason) END
            INTO answer;
          ELSE
            answer := CASE found_key.state
              WHEN 'run' THEN jsonb_build_object('status', 'in-flight', 'fingerprint', found_key.fingerprint,
                'remainingSeconds', extract(epoch FROM found_key.until_at - now_at))
              WHEN 'held' THEN jsonb_build_object('status', 'held', 'fingerprint', found_key.fingerprint, 'reason', found_key.reason)
              ELSE jsonb_build_object('status', 'done', 'fingerprint', found_key.fingerprint) END;
          END IF;
          EXIT WHEN answer IS NOT NULL;
        END LOOP;
        IF answer IS NULL THEN
          RAISE EXCEPTION 'a key changed hands in each of three attempts' USING ERRCODE = 'serialization_failure';
        END IF;
        answers[place] := answer;
      END LOOP;
      RETURN jsonb_build_object('nonce', 'fresh', 'keys', to_jsonb(answers))::text;
    END
    $begin$;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass('"countersign"."countersign_schema"')::oid AND attname = 'oldest' AND NOT attisdropped) THEN
    -- Of version 4, and last: it locks the table on which processes wait that begin.
    ALTER TABLE "countersign"."countersign_schema" ADD COLUMN oldest integer;
  END IF;

  IF found < 4 THEN
    UPDATE "countersign"."countersign_schema" SET version = 4, oldest = 3 WHERE id = 1;
  END IF;
END
$countersign$;
