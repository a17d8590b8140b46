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
    -- A row for each entity, or task without one, that has open tasks: claims of its tasks lock it.
    CREATE TABLE "countersign"."countersign_lanes" (
      queue text COLLATE "C" NOT NULL,
      -- e and an entity, or t and the id of a task without one
      lane text COLLATE "C" NOT NULL,
      -- when a claim looks at it: its oldest open task is due, or the lease of the owned one may have ended
      due_at timestamptz NOT NULL,
      -- the highest that a task of it was given
      last_number bigint NOT NULL,
      -- the claim that owns it, and of which task
      token text COLLATE "C",
      running text COLLATE "C",
      PRIMARY KEY (queue, lane)
    )
    -- Rows come and go with their tasks, and each claim writes them.
    WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
    CREATE INDEX "countersign_lanes_due" ON "countersign"."countersign_lanes" (queue, due_at);
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_tasks"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each task.
    CREATE TABLE "countersign"."countersign_tasks" (
      queue text COLLATE "C" NOT NULL,
      id text COLLATE "C" NOT NULL,
      lane text COLLATE "C" NOT NULL,
      -- the order of adding, exact within a lane; of microseconds since 1970
      number bigint NOT NULL,
      state text COLLATE "C" NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'dead', 'done')),
      body text COLLATE "C" NOT NULL,
      attempts integer NOT NULL DEFAULT 0,
      failures jsonb NOT NULL DEFAULT '[]',
      added_at timestamptz NOT NULL,
      -- not before
      due_at timestamptz NOT NULL,
      -- the claim that owns it, and the end of its lease: here, since whoever adds to its lane has that one locked
      token text COLLATE "C",
      leased_until timestamptz,
      ended_at timestamptz,
      -- of a done one: until when it is remembered
      until_at timestamptz,
      PRIMARY KEY (queue, id)
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
    CREATE INDEX "countersign_tasks_waiting" ON "countersign"."countersign_tasks" (queue, lane, number) WHERE state = 'open';
    CREATE INDEX "countersign_tasks_listed" ON "countersign"."countersign_tasks" (queue, state, number, id);
    CREATE INDEX "countersign_tasks_until" ON "countersign"."countersign_tasks" (until_at) WHERE state = 'done';
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_queues"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each queue that is paused.
    CREATE TABLE "countersign"."countersign_queues" (
      queue text COLLATE "C" PRIMARY KEY,
      paused_at timestamptz NOT NULL,
      paused_by text COLLATE "C" NOT NULL,
      note text COLLATE "C" NOT NULL
    );
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass('"countersign"."countersign_newest"')::oid AND relkind IN ('r', 'p')) THEN
    -- A row for each subject: the time of the newest event that was applied.
    CREATE TABLE "countersign"."countersign_newest" (
      scope text COLLATE "C" NOT NULL,
      subject text COLLATE "C" NOT NULL,
      -- nanoseconds since 1970 plus 10^20
      at text COLLATE "C" NOT NULL,
      PRIMARY KEY (scope, subject)
    );
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid = pg_catalog.to_regprocedure('"countersign"."countersign_work_add"(text)')::oid AND pg_catalog.strpos(prosrc, '"countersign"."countersign_tasks"') > 0) THEN
    -- Adds tasks. Gives the bodies of those that were known, by id.
    CREATE OR REPLACE FUNCTION "countersign"."countersign_work_add"(call text) RETURNS text
    LANGUAGE plpgsql VOLATILE SET enable_seqscan TO off AS $work$
    DECLARE
      asked CONSTANT jsonb := call::jsonb;
      now_at CONSTANT timestamptz := coalesce((asked ->> 'now')::timestamptz, clock_timestamp());
      wanted_queue CONSTANT text := asked ->> 'queue';
      wanted CONSTANT integer := jsonb_array_length(asked -> 'tasks');
      before jsonb;
      added text[];
      known jsonb;
      found_known integer;
      seen record;
      head record;
    BEGIN
      -- Lanes first, and in one order for all, so that no two wait for each other. One that was removed meanwhile comes again.
      WITH upserted AS (
        INSERT INTO "countersign"."countersign_lanes" AS kept (queue, lane, due_at, last_number)
        SELECT wanted_queue, heads.lane, now_at + heads.delay, round(extract(epoch FROM now_at)::float8 * 1000000::float8)::bigint + wanted
        FROM (SELECT DISTINCT ON ((items.item ->> 'lane') COLLATE "C") (items.item ->> 'lane') COLLATE "C" AS lane, (items.item ->> 'delayMs')::float8 * interval '1 millisecond' AS delay
          FROM jsonb_array_elements(asked -> 'tasks') WITH ORDINALITY AS items (item, place) ORDER BY (items.item ->> 'lane') COLLATE "C", items.place) AS heads
        ORDER BY heads.lane
        ON CONFLICT (queue, lane) DO UPDATE SET last_number = greatest(kept.last_number + wanted, excluded.last_number)
        RETURNING lane, last_number)
      SELECT jsonb_object_agg(upserted.lane, upserted.last_number - wanted) INTO before FROM upserted;

      WITH inserted AS (
        INSERT INTO "countersign"."countersign_tasks" (queue, id, lane, number, body, added_at, due_at)
        SELECT wanted_queue, items.item ->> 'id', (items.item ->> 'lane') COLLATE "C", (before ->> (items.item ->> 'lane') COLLATE "C")::bigint + items.place, items.item ->> 'body',
          now_at, now_at + (items.item ->> 'delayMs')::float8 * interval '1 millisecond'
        FROM jsonb_array_elements(asked -> 'tasks') WITH ORDINALITY AS items (item, place) ORDER BY (items.item ->> 'id') COLLATE "C"
        ON CONFLICT (queue, id) DO NOTHING RETURNING id)
      SELECT coalesce(array_agg(inserted.id), '{}') INTO added FROM inserted;
      IF cardinality(added) = wanted THEN
        RETURN '{}';
      END IF;

      SELECT jsonb_object_agg(kept.id, kept.body), count(*) INTO known, found_known
      FROM jsonb_array_elements(asked -> 'tasks') WITH ORDINALITY AS items (item, place) CROSS JOIN LATERAL (SELECT stored.queue, stored.id, stored.lane, stored.body FROM "countersign"."countersign_tasks" AS stored
          WHERE stored.queue = wanted_queue AND stored.id BETWEEN (items.item ->> 'id') AND (items.item ->> 'id') ORDER BY stored.id LIMIT 1) AS kept
      WHERE kept.id <> ALL (added);
      IF found_known < wanted - cardinality(added) THEN
        RAISE EXCEPTION 'a task was removed while it was added again' USING ERRCODE = 'serialization_failure';
      END IF;
      -- Those that got nothing, and have nothing.
      FOR seen IN SELECT jsonb_object_keys(before) COLLATE "C" AS lane LOOP
        SELECT waiting.id, waiting.due_at INTO head FROM "countersign"."countersign_tasks" AS waiting
          WHERE waiting.queue = wanted_queue AND waiting.lane BETWEEN seen.lane AND seen.lane AND waiting.state = 'open'
          ORDER BY waiting.lane, waiting.number LIMIT 1;
        IF NOT FOUND THEN
          DELETE FROM "countersign"."countersign_lanes" AS kept WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_lanes" AS found
            WHERE found.queue = wanted_queue AND found.lane BETWEEN seen.lane AND seen.lane ORDER BY found.lane LIMIT 1) AND kept.lane = seen.lane;
        END IF;
      END LOOP;
      RETURN known::text;
    END
    $work$;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid = pg_catalog.to_regprocedure('"countersign"."countersign_work_claim"(text)')::oid AND pg_catalog.strpos(prosrc, '"countersign"."countersign_tasks"') > 0) THEN
    -- Claims due tasks, one of a lane. Gives a row for each.
    CREATE OR REPLACE FUNCTION "countersign"."countersign_work_claim"(call text) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE SET enable_seqscan TO off AS $work$
    DECLARE
      asked CONSTANT jsonb := call::jsonb;
      now_at CONSTANT timestamptz := coalesce((asked ->> 'now')::timestamptz, clock_timestamp());
      wanted_queue CONSTANT text := asked ->> 'queue';
      room integer := (asked ->> 'limit')::integer;
      looked integer;
      due record;
      head record;
      leased timestamptz;
    BEGIN
      IF asked -> 'waitMs' IS NOT NULL THEN
        IF (txid_current_if_assigned() IS NOT NULL OR current_setting('countersign.transaction', true) = 'open') THEN
          RAISE EXCEPTION 'the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing a client' USING ERRCODE = 'active_sql_transaction';
        END IF;
        PERFORM set_config('lock_timeout', asked ->> 'waitMs', true);
        IF current_setting('synchronous_commit') = 'off' THEN
          PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
      END IF;
      IF EXISTS (SELECT FROM "countersign"."countersign_queues" AS paused WHERE paused.queue = wanted_queue) THEN
        RETURN;
      END IF;
      LOOP
        looked := 0;
        FOR due IN
          SELECT kept.lane, kept.token, kept.running FROM "countersign"."countersign_lanes" AS kept
          WHERE kept.queue = wanted_queue AND kept.due_at <= now_at ORDER BY kept.due_at LIMIT room FOR UPDATE SKIP LOCKED
        LOOP
          looked := looked + 1;
          IF due.token IS NOT NULL THEN
            SELECT kept.leased_until INTO leased FROM "countersign"."countersign_tasks" AS kept
            WHERE kept.queue = wanted_queue AND kept.id BETWEEN due.running AND due.running ORDER BY kept.id LIMIT 1;
            IF leased <= now_at THEN
              -- Its owner may be renewing it.
              SELECT kept.leased_until INTO leased FROM "countersign"."countersign_tasks" AS kept WHERE kept.queue = wanted_queue AND kept.id BETWEEN due.running AND due.running ORDER BY kept.id LIMIT 1 FOR UPDATE;
            END IF;
            IF leased > now_at THEN
              UPDATE "countersign"."countersign_lanes" AS kept SET due_at = leased WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_lanes" AS found
            WHERE found.queue = wanted_queue AND found.lane BETWEEN due.lane AND due.lane ORDER BY found.lane LIMIT 1) AND kept.lane = due.lane;
              CONTINUE;
            END IF;
            UPDATE "countersign"."countersign_tasks" AS kept SET token = NULL, leased_until = NULL, failures = CASE WHEN jsonb_array_length(kept.failures) < 20 THEN kept.failures ELSE kept.failures - 0 END
            || jsonb_build_object('atMs', round(extract(epoch FROM now_at)::float8 * 1000)::bigint, 'attempt', kept.attempts, 'reason', 'lease-expired')
            WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_tasks" AS found
            WHERE found.queue = wanted_queue AND found.id BETWEEN due.running AND due.running ORDER BY found.id LIMIT 1) AND kept.id = due.running;
          END IF;
          SELECT waiting.id, waiting.due_at INTO head FROM "countersign"."countersign_tasks" AS waiting
          WHERE waiting.queue = wanted_queue AND waiting.lane BETWEEN due.lane AND due.lane AND waiting.state = 'open'
          ORDER BY waiting.lane, waiting.number LIMIT 1;
          IF NOT FOUND THEN
            DELETE FROM "countersign"."countersign_lanes" AS kept WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_lanes" AS found
            WHERE found.queue = wanted_queue AND found.lane BETWEEN due.lane AND due.lane ORDER BY found.lane LIMIT 1) AND kept.lane = due.lane;
          ELSIF head.due_at > now_at THEN
            UPDATE "countersign"."countersign_lanes" AS kept SET due_at = head.due_at, token = NULL, running = NULL
            WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_lanes" AS found
            WHERE found.queue = wanted_queue AND found.lane BETWEEN due.lane AND due.lane ORDER BY found.lane LIMIT 1) AND kept.lane = due.lane;
          ELSE
            UPDATE "countersign"."countersign_lanes" AS kept SET due_at = now_at + (asked ->> 'leaseMs')::float8 * interval '1 millisecond',
              token = asked ->> 'token', running = head.id
            WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_lanes" AS found
            WHERE found.queue = wanted_queue AND found.lane BETWEEN due.lane AND due.lane ORDER BY found.lane LIMIT 1) AND kept.lane = due.lane;
            RETURN QUERY UPDATE "countersign"."countersign_tasks" AS kept SET attempts = kept.attempts + 1, token = asked ->> 'token',
              leased_until = now_at + (asked ->> 'leaseMs')::float8 * interval '1 millisecond'
            WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_tasks" AS found
            WHERE found.queue = wanted_queue AND found.id BETWEEN head.id AND head.id ORDER BY found.id LIMIT 1) AND kept.id = head.id
            RETURNING json_build_object('id', kept.id, 'lane', kept.lane, 'body', kept.body, 'attempt', kept.attempts,
              'addedAtMs', round(extract(epoch FROM kept.added_at)::float8 * 1000)::bigint)::text;
            looked := looked - 1;
            room := room - 1;
          END IF;
        END LOOP;
        -- Lanes that were not as they looked have taken the place of others.
        EXIT WHEN room = 0 OR looked = 0;
      END LOOP;
    END
    $work$;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid = pg_catalog.to_regprocedure('"countersign"."countersign_work_extend"(text)')::oid AND pg_catalog.strpos(prosrc, '"countersign"."countersign_tasks"') > 0) THEN
    -- Extends leases, in the tasks' own rows. Gives the ids of the tasks that are owned.
    CREATE OR REPLACE FUNCTION "countersign"."countersign_work_extend"(call text) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE SET enable_seqscan TO off AS $work$
    DECLARE
      asked CONSTANT jsonb := call::jsonb;
      now_at CONSTANT timestamptz := coalesce((asked ->> 'now')::timestamptz, clock_timestamp());
      owned record;
    BEGIN
      IF asked -> 'waitMs' IS NOT NULL THEN
        IF (txid_current_if_assigned() IS NOT NULL OR current_setting('countersign.transaction', true) = 'open') THEN
          RAISE EXCEPTION 'the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing a client' USING ERRCODE = 'active_sql_transaction';
        END IF;
        PERFORM set_config('lock_timeout', asked ->> 'waitMs', true);
        IF current_setting('synchronous_commit') = 'off' THEN
          PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
      END IF;
      FOR owned IN
        SELECT kept.queue, kept.id, kept.lane, items.item ->> 'token' AS token
        FROM jsonb_array_elements(asked -> 'tasks') WITH ORDINALITY AS items (item, place) CROSS JOIN LATERAL (SELECT stored.queue, stored.id, stored.lane, stored.body FROM "countersign"."countersign_tasks" AS stored
          WHERE stored.queue = items.item ->> 'queue' AND stored.id BETWEEN (items.item ->> 'id') AND (items.item ->> 'id') ORDER BY stored.id LIMIT 1) AS kept ORDER BY kept.queue, kept.lane
      LOOP
        PERFORM FROM "countersign"."countersign_tasks" AS kept WHERE kept.queue = owned.queue AND kept.id BETWEEN owned.id AND owned.id AND kept.token = owned.token ORDER BY kept.id LIMIT 1 FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
          UPDATE "countersign"."countersign_tasks" AS kept SET leased_until = now_at + (asked ->> 'leaseMs')::float8 * interval '1 millisecond'
          WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_tasks" AS found
            WHERE found.queue = owned.queue AND found.id BETWEEN owned.id AND owned.id ORDER BY found.id LIMIT 1) AND kept.id = owned.id;
          RETURN NEXT owned.id;
        ELSE
          -- Locked, it is being ended, and its lane is locked too: that is not waited for.
          RETURN QUERY SELECT owned.id FROM "countersign"."countersign_tasks" AS kept WHERE kept.queue = owned.queue AND kept.id BETWEEN owned.id AND owned.id AND kept.token = owned.token ORDER BY kept.id LIMIT 1;
        END IF;
      END LOOP;
    END
    $work$;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid = pg_catalog.to_regprocedure('"countersign"."countersign_work_settle"(text)')::oid AND pg_catalog.strpos(prosrc, '"countersign"."countersign_tasks"') > 0) THEN
    -- Ends the attempts of owned tasks. Gives how many were owned.
    CREATE OR REPLACE FUNCTION "countersign"."countersign_work_settle"(call text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET enable_seqscan TO off AS $work$
    DECLARE
      asked CONSTANT jsonb := call::jsonb;
      now_at CONSTANT timestamptz := coalesce((asked ->> 'now')::timestamptz, clock_timestamp());
      goal CONSTANT text := asked ->> 'goal';
      reason CONSTANT text := asked ->> 'reason';
      undone CONSTANT integer := coalesce((asked ->> 'isUndone')::boolean, false)::integer;
      settled integer := 0;
      head record;
      owned record;
    BEGIN
      IF asked -> 'waitMs' IS NOT NULL THEN
        IF (txid_current_if_assigned() IS NOT NULL OR current_setting('countersign.transaction', true) = 'open') THEN
          RAISE EXCEPTION 'the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing a client' USING ERRCODE = 'active_sql_transaction';
        END IF;
        PERFORM set_config('lock_timeout', asked ->> 'waitMs', true);
        IF current_setting('synchronous_commit') = 'off' THEN
          PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
      END IF;
      FOR owned IN
        SELECT kept.queue, kept.id, kept.lane, items.item ->> 'token' AS token
        FROM jsonb_array_elements(asked -> 'tasks') WITH ORDINALITY AS items (item, place) CROSS JOIN LATERAL (SELECT stored.queue, stored.id, stored.lane, stored.body FROM "countersign"."countersign_tasks" AS stored
          WHERE stored.queue = items.item ->> 'queue' AND stored.id BETWEEN (items.item ->> 'id') AND (items.item ->> 'id') ORDER BY stored.id LIMIT 1) AS kept ORDER BY kept.queue, kept.lane
      LOOP
        PERFORM FROM "countersign"."countersign_lanes" AS kept WHERE kept.queue = owned.queue AND kept.lane BETWEEN owned.lane AND owned.lane
          AND kept.token = owned.token AND kept.running = owned.id ORDER BY kept.lane LIMIT 1 FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        settled := settled + 1;
        PERFORM FROM "countersign"."countersign_tasks" AS kept WHERE kept.queue = owned.queue AND kept.id BETWEEN owned.id AND owned.id ORDER BY kept.id LIMIT 1 FOR UPDATE;
        UPDATE "countersign"."countersign_tasks" AS kept SET state = goal, token = NULL, leased_until = NULL, attempts = kept.attempts - undone,
          due_at = CASE goal WHEN 'open' THEN now_at + (asked ->> 'delayMs')::float8 * interval '1 millisecond' ELSE kept.due_at END,
          ended_at = CASE goal WHEN 'open' THEN NULL ELSE now_at END,
          until_at = CASE goal WHEN 'done' THEN now_at + (asked ->> 'restMs')::float8 * interval '1 millisecond' END,
          failures = CASE WHEN reason IS NULL THEN kept.failures ELSE CASE WHEN jsonb_array_length(kept.failures) < 20 THEN kept.failures ELSE kept.failures - 0 END
            || jsonb_build_object('atMs', round(extract(epoch FROM now_at)::float8 * 1000)::bigint, 'attempt', kept.attempts, 'reason', reason) END
        WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_tasks" AS found
            WHERE found.queue = owned.queue AND found.id BETWEEN owned.id AND owned.id ORDER BY found.id LIMIT 1) AND kept.id = owned.id;
        SELECT waiting.id, waiting.due_at INTO head FROM "countersign"."countersign_tasks" AS waiting
          WHERE waiting.queue = owned.queue AND waiting.lane BETWEEN owned.lane AND owned.lane AND waiting.state = 'open'
          ORDER BY waiting.lane, waiting.number LIMIT 1;
        IF FOUND THEN
          UPDATE "countersign"."countersign_lanes" AS kept SET due_at = greatest(head.due_at, now_at), token = NULL, running = NULL
          WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_lanes" AS found
            WHERE found.queue = owned.queue AND found.lane BETWEEN owned.lane AND owned.lane ORDER BY found.lane LIMIT 1) AND kept.lane = owned.lane;
        ELSE
          DELETE FROM "countersign"."countersign_lanes" AS kept WHERE kept.ctid = (SELECT found.ctid FROM "countersign"."countersign_lanes" AS found
            WHERE found.queue = owned.queue AND found.lane BETWEEN owned.lane AND owned.lane ORDER BY found.lane LIMIT 1) AND kept.lane = owned.lane;
        END IF;
      END LOOP;
      RETURN settled;
    END
    $work$;
  END IF;

  IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid = pg_catalog.to_regprocedure('"countersign"."countersign_work_retry"(text)')::oid AND pg_catalog.strpos(prosrc, '"countersign"."countersign_tasks"') > 0) THEN
    -- Opens dead tasks again. Gives how many were dead.
    CREATE OR REPLACE FUNCTION "countersign"."countersign_work_retry"(call text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET enable_seqscan TO off AS $work$
    DECLARE
      asked CONSTANT jsonb := call::jsonb;
      now_at CONSTANT timestamptz := coalesce((asked ->> 'now')::timestamptz, clock_timestamp());
      wanted_queue CONSTANT text := asked ->> 'queue';
      ids CONSTANT text[] := CASE WHEN asked -> 'ids' IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(asked -> 'ids')) END;
      since CONSTANT bigint := (asked ->> 'deadSinceMs')::bigint;
      locked text[];
      retried integer;
    BEGIN
      IF asked -> 'waitMs' IS NOT NULL THEN
        IF (txid_current_if_assigned() IS NOT NULL OR current_setting('countersign.transaction', true) = 'open') THEN
          RAISE EXCEPTION 'the pool gave a connection on which a transaction is open; COMMIT or ROLLBACK before releasing a client' USING ERRCODE = 'active_sql_transaction';
        END IF;
        PERFORM set_config('lock_timeout', asked ->> 'waitMs', true);
        IF current_setting('synchronous_commit') = 'off' THEN
          PERFORM set_config('synchronous_commit', 'on', true);
        END IF;
      END IF;
      WITH upserted AS (
        INSERT INTO "countersign"."countersign_lanes" AS lanes (queue, lane, due_at, last_number)
        SELECT wanted_queue, kept.lane, now_at, max(kept.number) FROM "countersign"."countersign_tasks" AS kept WHERE kept.queue = wanted_queue AND kept.state = 'dead' AND (ids IS NULL OR kept.id = ANY (ids))
        AND (since IS NULL OR round(extract(epoch FROM kept.ended_at)::float8 * 1000)::bigint >= since)
        GROUP BY kept.lane ORDER BY kept.lane
        ON CONFLICT (queue, lane) DO UPDATE SET
          due_at = CASE WHEN lanes.token IS NULL THEN least(lanes.due_at, excluded.due_at) ELSE lanes.due_at END
        RETURNING lanes.lane)
      SELECT array_agg(upserted.lane) INTO locked FROM upserted;
      -- One that died since has no lane that is locked.
      UPDATE "countersign"."countersign_tasks" AS kept SET state = 'open', attempts = 0, due_at = now_at, ended_at = NULL
      WHERE kept.queue = wanted_queue AND kept.state = 'dead' AND (ids IS NULL OR kept.id = ANY (ids))
        AND (since IS NULL OR round(extract(epoch FROM kept.ended_at)::float8 * 1000)::bigint >= since) AND kept.lane = ANY (locked);
      GET DIAGNOSTICS retried = ROW_COUNT;
      RETURN retried;
    END
    $work$;
  END IF;
END
$countersign$;
