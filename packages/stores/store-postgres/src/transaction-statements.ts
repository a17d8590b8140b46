import type { ResolvedPostgresOptions } from "./options.ts";
import { savedDurability } from "./begin-statement.ts";
import { milliseconds } from "./statement-parts.ts";

export type TransactionStatements = ReturnType<typeof transactionStatements>;

const savepoint = "SAVEPOINT countersign";
const release = "RELEASE SAVEPOINT countersign";

// What a deferred constraint refuses must fail here, where it can be answered, and not COMMIT.
const check = "SET CONSTRAINTS ALL IMMEDIATE";
const [beforeCheck, afterCheck] = [
  "SAVEPOINT countersign_check",
  "ROLLBACK TO SAVEPOINT countersign_check",
] as const;

// A handler may have set it to `off` or `local` for speed: then a crash, or a failover, takes a payment back that was confirmed.
const restoredDurability = `SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
  THEN coalesce(current_setting('${savedDurability}', true), 'on') ELSE current_setting('synchronous_commit') END, true)`;

/** The statements of a transaction, which go in one message where the library can. */
export function transactionStatements({ names, retentionMs }: ResolvedPostgresOptions) {
  const done = (call: string): string => `${asked(inlined(call))},
restored AS MATERIALIZED (${restoredDurability})
UPDATE ${names.idempotency} AS kept SET version = kept.version + 1, state = 'done', reason = '', until_at = undone.now + ${milliseconds(retentionMs)}
FROM undone, restored WHERE ${isOwn} AND kept.state = 'running' RETURNING kept.state AS kept_as`;
  return {
    savepoint,
    release,
    /**
     * $1 key, $2 token. Gives how many commands of the transaction may have written since its key was. The server counts each statement that
     * can write, also one inside of a function; `cmin` is that count for a row, which this writes once more.
     */
    writtenCommands: `WITH begun AS MATERIALIZED (SELECT kept.key, kept.cmin::text::bigint AS command FROM ${names.idempotency} AS kept
  WHERE kept.key = $1 AND kept.token = $2)
UPDATE ${names.idempotency} AS kept SET version = kept.version + 1 FROM begun WHERE kept.key = begun.key
RETURNING (kept.cmin::text::bigint - begun.command - 1)::text AS commands`,
    /** Done behind the end of the savepoint: in a message that fails there, and in a transaction that is another one, no key becomes it. */
    keepLast: (call: string): readonly string[] => [check, release, done(call)],
    keepNothing: [check, restoredDurability, release],
    // The rollback leaves the constraints deferred for the handlers to come, and what they check to COMMIT.
    keepSome: (call: string): readonly string[] => [
      beforeCheck,
      check,
      afterCheck,
      release,
      done(call),
      savepoint,
    ],
    /**
     * $1 or the like: the call. Gives those of its keys whose rows have its tokens: they are held now, but for one that is done, which has
     * committed with all that paid it.
     */
    hold: (call: string): string => `${asked(call)},
held AS (
  UPDATE ${names.idempotency} AS kept SET version = kept.version + 1, state = 'held', reason = (SELECT asked.call ->> 'reason' FROM asked), until_at = undone.now
  FROM undone WHERE ${isOwn} AND kept.state IN ('running', 'held') RETURNING kept.key)
SELECT key FROM held
UNION ALL SELECT kept.key FROM ${names.idempotency} AS kept, undone WHERE ${isOwn} AND kept.state = 'done'`,
  };
}

/** Keys and their owner's tokens, as stored. */
export interface OwnCall {
  readonly keys: readonly { readonly key: string; readonly token: string }[];
  /** In place of the server's clock. */
  readonly now?: string | undefined;
}

function asked(call: string): string {
  return `WITH asked AS MATERIALIZED (SELECT ${call}::jsonb AS call),
undone AS MATERIALIZED (
  SELECT item ->> 'key' AS key, item ->> 'token' AS token, coalesce((asked.call ->> 'now')::timestamptz, clock_timestamp()) AS now
  FROM asked, jsonb_array_elements(asked.call -> 'keys') AS items (item))`;
}

const isOwn = "kept.key = undone.key AND kept.token = undone.token";

/** The text as SQL for messages without parameters. In hexadecimal: no setting of the server reads that otherwise. */
export function inlined(text: string): string {
  return `convert_from(decode('${Buffer.from(text).toString("hex")}', 'hex'), 'UTF8')`;
}
