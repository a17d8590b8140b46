import { leaseExpired } from "@countersign/idempotency/store";
import { inTransaction } from "./errors.ts";
import { isInTransaction, microseconds, milliseconds, wholeMilliseconds } from "./statement-parts.ts";
import { type TableNames, quoteLiteral } from "./table-names.ts";
import { headOf, lockTask, locked, only } from "./work-rows.ts";

/**
 * SQL that makes the functions of the work store. Each of their statements sees what was committed before it, and so, once a lane is
 * locked, every task of it. Arguments and answers are JSON, so that signatures stay.
 */
export function workFunctions(names: TableNames): readonly (readonly [name: string, sql: string])[] {
  return [
    [names.addWork, addFunction(names)],
    [names.claimWork, claimFunction(names)],
    [names.extendWork, extendFunction(names)],
    [names.settleWork, settleFunction(names)],
    [names.retryWork, retryFunction(names)],
  ];
}

/** SQL for the failures of a task with another one: the newest 20. */
export function failuresWith(reason: string, now: string): string {
  return `CASE WHEN jsonb_array_length(kept.failures) < 20 THEN kept.failures ELSE kept.failures - 0 END
        || jsonb_build_object('atMs', ${wholeMilliseconds(now)}, 'attempt', kept.attempts, 'reason', ${reason})`;
}

// A step that is answered must have happened: not in a transaction that goes on, nor lost by a crash.
const alone = `IF asked -> 'waitMs' IS NOT NULL THEN
    IF ${isInTransaction} THEN
      RAISE EXCEPTION ${quoteLiteral(inTransaction)} USING ERRCODE = 'active_sql_transaction';
    END IF;
    PERFORM set_config('lock_timeout', asked ->> 'waitMs', true);
    IF current_setting('synchronous_commit') = 'off' THEN
      PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
  END IF;`;

// A session keeps its plans, and a table that was small at first can grow by thousands of tasks before it is analysed.
const language = "LANGUAGE plpgsql VOLATILE SET enable_seqscan TO off";

const asked = `asked CONSTANT jsonb := call::jsonb;
  now_at CONSTANT timestamptz := coalesce((asked ->> 'now')::timestamptz, clock_timestamp());`;

const items = "jsonb_array_elements(asked -> 'tasks') WITH ORDINALITY AS items (item, place)";

/** Looks each one up by itself: a LIMIT keeps the planner from a join with the whole table. */
function taskOfItem(tasks: string, queue: string): string {
  return `CROSS JOIN LATERAL (SELECT stored.queue, stored.id, stored.lane, stored.body FROM ${tasks} AS stored
      WHERE ${only("stored", "id", queue, "(items.item ->> 'id')")} ORDER BY stored.id LIMIT 1) AS kept`;
}

function ownedTasks(tasks: string): string {
  return `SELECT kept.queue, kept.id, kept.lane, items.item ->> 'token' AS token
    FROM ${items} ${taskOfItem(tasks, "items.item ->> 'queue'")} ORDER BY kept.queue, kept.lane`;
}

const isOwned = `${only("kept", "lane", "owned.queue", "owned.lane")}
      AND kept.token = owned.token AND kept.running = owned.id ORDER BY kept.lane LIMIT 1`;

function addFunction({ addWork, lanes, tasks }: TableNames): string {
  const lane = `(items.item ->> 'lane') COLLATE "C"`;
  const delay = milliseconds("(items.item ->> 'delayMs')");
  return `-- Adds tasks. Gives the bodies of those that were known, by id.
CREATE OR REPLACE FUNCTION ${addWork}(call text) RETURNS text
${language} AS $work$
DECLARE
  ${asked}
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
    INSERT INTO ${lanes} AS kept (queue, lane, due_at, last_number)
    SELECT wanted_queue, heads.lane, now_at + heads.delay, ${microseconds("now_at")} + wanted
    FROM (SELECT DISTINCT ON (${lane}) ${lane} AS lane, ${delay} AS delay
      FROM ${items} ORDER BY ${lane}, items.place) AS heads
    ORDER BY heads.lane
    ON CONFLICT (queue, lane) DO UPDATE SET last_number = greatest(kept.last_number + wanted, excluded.last_number)
    RETURNING lane, last_number)
  SELECT jsonb_object_agg(upserted.lane, upserted.last_number - wanted) INTO before FROM upserted;

  WITH inserted AS (
    INSERT INTO ${tasks} (queue, id, lane, number, body, added_at, due_at)
    SELECT wanted_queue, items.item ->> 'id', ${lane}, (before ->> ${lane})::bigint + items.place, items.item ->> 'body',
      now_at, now_at + ${delay}
    FROM ${items} ORDER BY (items.item ->> 'id') COLLATE "C"
    ON CONFLICT (queue, id) DO NOTHING RETURNING id)
  SELECT coalesce(array_agg(inserted.id), '{}') INTO added FROM inserted;
  IF cardinality(added) = wanted THEN
    RETURN '{}';
  END IF;

  SELECT jsonb_object_agg(kept.id, kept.body), count(*) INTO known, found_known
  FROM ${items} ${taskOfItem(tasks, "wanted_queue")}
  WHERE kept.id <> ALL (added);
  IF found_known < wanted - cardinality(added) THEN
    RAISE EXCEPTION 'a task was removed while it was added again' USING ERRCODE = 'serialization_failure';
  END IF;
  -- Those that got nothing, and have nothing.
  FOR seen IN SELECT jsonb_object_keys(before) COLLATE "C" AS lane LOOP
    ${headOf(tasks, "seen.lane", "wanted_queue")}
    IF NOT FOUND THEN
      DELETE FROM ${lanes} AS kept WHERE ${locked(lanes, "lane", "wanted_queue", "seen.lane")};
    END IF;
  END LOOP;
  RETURN known::text;
END
$work$;
`;
}

function claimFunction({ claimWork, lanes, tasks, queues }: TableNames): string {
  return `-- Claims due tasks, one of a lane. Gives a row for each.
CREATE OR REPLACE FUNCTION ${claimWork}(call text) RETURNS SETOF text
${language} AS $work$
DECLARE
  ${asked}
  wanted_queue CONSTANT text := asked ->> 'queue';
  room integer := (asked ->> 'limit')::integer;
  looked integer;
  due record;
  head record;
  leased timestamptz;
BEGIN
  ${alone}
  IF EXISTS (SELECT FROM ${queues} AS paused WHERE paused.queue = wanted_queue) THEN
    RETURN;
  END IF;
  LOOP
    looked := 0;
    FOR due IN
      SELECT kept.lane, kept.token, kept.running FROM ${lanes} AS kept
      WHERE kept.queue = wanted_queue AND kept.due_at <= now_at ORDER BY kept.due_at LIMIT room FOR UPDATE SKIP LOCKED
    LOOP
      looked := looked + 1;
      IF due.token IS NOT NULL THEN
        SELECT kept.leased_until INTO leased FROM ${tasks} AS kept
        WHERE ${only("kept", "id", "wanted_queue", "due.running")} ORDER BY kept.id LIMIT 1;
        IF leased <= now_at THEN
          -- Its owner may be renewing it.
          SELECT kept.leased_until INTO leased ${lockTask(tasks, "wanted_queue", "due.running")}
        END IF;
        IF leased > now_at THEN
          UPDATE ${lanes} AS kept SET due_at = leased WHERE ${locked(lanes, "lane", "wanted_queue", "due.lane")};
          CONTINUE;
        END IF;
        UPDATE ${tasks} AS kept SET token = NULL, leased_until = NULL, failures = ${failuresWith(`'${leaseExpired}'`, "now_at")}
        WHERE ${locked(tasks, "id", "wanted_queue", "due.running")};
      END IF;
      ${headOf(tasks, "due.lane", "wanted_queue")}
      IF NOT FOUND THEN
        DELETE FROM ${lanes} AS kept WHERE ${locked(lanes, "lane", "wanted_queue", "due.lane")};
      ELSIF head.due_at > now_at THEN
        UPDATE ${lanes} AS kept SET due_at = head.due_at, token = NULL, running = NULL
        WHERE ${locked(lanes, "lane", "wanted_queue", "due.lane")};
      ELSE
        UPDATE ${lanes} AS kept SET due_at = now_at + ${milliseconds("(asked ->> 'leaseMs')")},
          token = asked ->> 'token', running = head.id
        WHERE ${locked(lanes, "lane", "wanted_queue", "due.lane")};
        RETURN QUERY UPDATE ${tasks} AS kept SET attempts = kept.attempts + 1, token = asked ->> 'token',
          leased_until = now_at + ${milliseconds("(asked ->> 'leaseMs')")}
        WHERE ${locked(tasks, "id", "wanted_queue", "head.id")}
        RETURNING json_build_object('id', kept.id, 'lane', kept.lane, 'body', kept.body, 'attempt', kept.attempts,
          'addedAtMs', ${wholeMilliseconds("kept.added_at")})::text;
        looked := looked - 1;
        room := room - 1;
      END IF;
    END LOOP;
    -- Lanes that were not as they looked have taken the place of others.
    EXIT WHEN room = 0 OR looked = 0;
  END LOOP;
END
$work$;
`;
}

function extendFunction({ extendWork, tasks }: TableNames): string {
  const isTheirs = `${only("kept", "id", "owned.queue", "owned.id")} AND kept.token = owned.token ORDER BY kept.id LIMIT 1`;
  return `-- Extends leases, in the tasks' own rows. Gives the ids of the tasks that are owned.
CREATE OR REPLACE FUNCTION ${extendWork}(call text) RETURNS SETOF text
${language} AS $work$
DECLARE
  ${asked}
  owned record;
BEGIN
  ${alone}
  FOR owned IN
    ${ownedTasks(tasks)}
  LOOP
    PERFORM FROM ${tasks} AS kept WHERE ${isTheirs} FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
      UPDATE ${tasks} AS kept SET leased_until = now_at + ${milliseconds("(asked ->> 'leaseMs')")}
      WHERE ${locked(tasks, "id", "owned.queue", "owned.id")};
      RETURN NEXT owned.id;
    ELSE
      -- Locked, it is being ended, and its lane is locked too: that is not waited for.
      RETURN QUERY SELECT owned.id FROM ${tasks} AS kept WHERE ${isTheirs};
    END IF;
  END LOOP;
END
$work$;
`;
}

function settleFunction({ settleWork, lanes, tasks }: TableNames): string {
  return `-- Ends the attempts of owned tasks. Gives how many were owned.
CREATE OR REPLACE FUNCTION ${settleWork}(call text) RETURNS integer
${language} AS $work$
DECLARE
  ${asked}
  goal CONSTANT text := asked ->> 'goal';
  reason CONSTANT text := asked ->> 'reason';
  undone CONSTANT integer := coalesce((asked ->> 'isUndone')::boolean, false)::integer;
  settled integer := 0;
  head record;
  owned record;
BEGIN
  ${alone}
  FOR owned IN
    ${ownedTasks(tasks)}
  LOOP
    PERFORM FROM ${lanes} AS kept WHERE ${isOwned} FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    settled := settled + 1;
    PERFORM ${lockTask(tasks, "owned.queue", "owned.id")}
    UPDATE ${tasks} AS kept SET state = goal, token = NULL, leased_until = NULL, attempts = kept.attempts - undone,
      due_at = CASE goal WHEN 'open' THEN now_at + ${milliseconds("(asked ->> 'delayMs')")} ELSE kept.due_at END,
      ended_at = CASE goal WHEN 'open' THEN NULL ELSE now_at END,
      until_at = CASE goal WHEN 'done' THEN now_at + ${milliseconds("(asked ->> 'restMs')")} END,
      failures = CASE WHEN reason IS NULL THEN kept.failures ELSE ${failuresWith("reason", "now_at")} END
    WHERE ${locked(tasks, "id", "owned.queue", "owned.id")};
    ${headOf(tasks, "owned.lane", "owned.queue")}
    IF FOUND THEN
      UPDATE ${lanes} AS kept SET due_at = greatest(head.due_at, now_at), token = NULL, running = NULL
      WHERE ${locked(lanes, "lane", "owned.queue", "owned.lane")};
    ELSE
      DELETE FROM ${lanes} AS kept WHERE ${locked(lanes, "lane", "owned.queue", "owned.lane")};
    END IF;
  END LOOP;
  RETURN settled;
END
$work$;
`;
}

function retryFunction({ retryWork, lanes, tasks }: TableNames): string {
  const isAsked = `kept.queue = wanted_queue AND kept.state = 'dead' AND (ids IS NULL OR kept.id = ANY (ids))
    AND (since IS NULL OR ${wholeMilliseconds("kept.ended_at")} >= since)`;
  return `-- Opens dead tasks again. Gives how many were dead.
CREATE OR REPLACE FUNCTION ${retryWork}(call text) RETURNS integer
${language} AS $work$
DECLARE
  ${asked}
  wanted_queue CONSTANT text := asked ->> 'queue';
  ids CONSTANT text[] := CASE WHEN asked -> 'ids' IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(asked -> 'ids')) END;
  since CONSTANT bigint := (asked ->> 'deadSinceMs')::bigint;
  locked text[];
  retried integer;
BEGIN
  ${alone}
  WITH upserted AS (
    INSERT INTO ${lanes} AS lanes (queue, lane, due_at, last_number)
    SELECT wanted_queue, kept.lane, now_at, max(kept.number) FROM ${tasks} AS kept WHERE ${isAsked}
    GROUP BY kept.lane ORDER BY kept.lane
    ON CONFLICT (queue, lane) DO UPDATE SET
      due_at = CASE WHEN lanes.token IS NULL THEN least(lanes.due_at, excluded.due_at) ELSE lanes.due_at END
    RETURNING lanes.lane)
  SELECT array_agg(upserted.lane) INTO locked FROM upserted;
  -- One that died since has no lane that is locked.
  UPDATE ${tasks} AS kept SET state = 'open', attempts = 0, due_at = now_at, ended_at = NULL
  WHERE ${isAsked} AND kept.lane = ANY (locked);
  GET DIAGNOSTICS retried = ROW_COUNT;
  RETURN retried;
END
$work$;
`;
}
