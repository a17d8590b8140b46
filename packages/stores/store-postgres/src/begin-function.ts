import { leaseExpired } from "@countersign/idempotency/store";
import { floorKey, microseconds, milliseconds } from "./statement-parts.ts";
import type { TableNames } from "./table-names.ts";

/** The setting that keeps what `synchronous_commit` was when the transaction began. */
export const savedDurability = "countersign.synchronous_commit";

/** What the function takes, as JSON: texts as stored, times in milliseconds. */
export interface BeginCall {
  readonly nonce?: { readonly digest: string; readonly token: string; readonly retainMs: number } | undefined;
  /** In one order for all transactions, so that no two wait for each other. */
  readonly keys: readonly { readonly key: string; readonly token: string; readonly fingerprint: string }[];
  /** Whether an expired run is left to an operator, whatever its row says. */
  readonly holds: boolean;
  /** Writes the keys as held for this reason, not as running; also those that their own token runs. */
  readonly heldFor?: string | undefined;
  readonly waitMs: number;
  readonly idleMs: number;
  readonly leaseMs: number;
  /** In place of the server's clock. */
  readonly now?: string | undefined;
}

/**
 * SQL that makes the function of `TransactionStore.begin`. Each of its statements sees what was committed before it: one statement for
 * all, after a wait, would still see an absent key that was paid meanwhile. Its argument is JSON, so that its signature stays.
 */
export function beginFunction({ begin, nonces, idempotency }: TableNames): string {
  const isLeft =
    "stored.state = 'running' AND stored.token <> wanted_token AND (holds OR stored.recovery = 'hold')";
  return `-- Begins a payment's transaction: claims its nonce and keys.
CREATE OR REPLACE FUNCTION ${begin}(claim text) RETURNS text
LANGUAGE plpgsql VOLATILE AS $begin$
DECLARE
  asked CONSTANT jsonb := claim::jsonb;
  clock CONSTANT timestamptz := (asked ->> 'now')::timestamptz;
  lease CONSTANT interval := ${milliseconds("(asked ->> 'leaseMs')")};
  holds CONSTANT boolean := (asked ->> 'holds')::boolean;
  held_for CONSTANT text := coalesce(asked ->> 'heldFor', '');
  goal CONSTANT text := CASE WHEN held_for = '' THEN 'running' ELSE 'held' END;
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
  PERFORM set_config('${savedDurability}', current_setting('synchronous_commit'), true);

  IF asked -> 'nonce' IS NOT NULL THEN
    INSERT INTO ${nonces} AS stored (digest, token, until_at)
    VALUES (decode(asked #>> '{nonce,digest}', 'hex'), asked #>> '{nonce,token}',
      coalesce(clock, clock_timestamp()) + ${milliseconds("(asked #>> '{nonce,retainMs}')")})
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
      INSERT INTO ${idempotency} (key, state, token, fence, fingerprint, reason, recovery, until_at, version)
      VALUES (wanted_key, goal, wanted_token, greatest(${microseconds("now_at")},
        (SELECT pruned.fence + 1 FROM ${idempotency} AS pruned WHERE pruned.key = ${floorKey})),
        wanted_print, held_for, 'hold', now_at + lease, 1)
      ON CONFLICT (key) DO NOTHING;
      IF FOUND THEN
        answer := '{"status": "begun"}';
        EXIT;
      END IF;
      SELECT stored.state, stored.token, stored.fingerprint, stored.reason, stored.until_at INTO found_key
      FROM ${idempotency} AS stored WHERE stored.key = wanted_key;
      -- After the wait.
      now_at := coalesce(clock, clock_timestamp());
      -- Removed meanwhile.
      CONTINUE WHEN found_key.state IS NULL;
      IF ${isFree("found_key")} THEN
        UPDATE ${idempotency} AS stored SET
          version = stored.version + 1,
          state = CASE WHEN ${isLeft} THEN 'held' ELSE goal END,
          token = CASE WHEN ${isLeft} THEN stored.token ELSE wanted_token END,
          fence = CASE WHEN ${isLeft} THEN stored.fence ELSE greatest(stored.fence + 1, ${microseconds("now_at")}) END,
          fingerprint = CASE WHEN ${isLeft} THEN stored.fingerprint ELSE wanted_print END,
          reason = CASE WHEN ${isLeft} THEN '${leaseExpired}' ELSE held_for END,
          recovery = CASE WHEN ${isLeft} THEN stored.recovery ELSE 'hold' END,
          until_at = CASE WHEN ${isLeft} THEN stored.until_at ELSE now_at + lease END,
          -- A row that is over, and not yet pruned, keeps no decision.
          decision = CASE WHEN stored.state IN ('done', 'free') AND stored.until_at <= now_at THEN NULL ELSE stored.decision END
        WHERE stored.key = wanted_key AND (${isFree("stored")})
        RETURNING CASE WHEN stored.token = wanted_token THEN '{"status": "begun"}'::jsonb
          ELSE jsonb_build_object('status', 'held', 'fingerprint', stored.fingerprint, 'reason', stored.reason) END
        INTO answer;
      ELSE
        answer := CASE found_key.state
          WHEN 'running' THEN jsonb_build_object('status', 'in-flight', 'fingerprint', found_key.fingerprint,
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
`;
}

/** Whether a claim may write the key. */
function isFree(row: string): string {
  return `${row}.state = 'free'
        OR (${row}.state IN ('running', 'done') AND ${row}.until_at <= now_at)
        OR (held_for <> '' AND ${row}.state = 'running' AND ${row}.token = wanted_token)`;
}
