import type { ResolvedPostgresOptions } from "./options.ts";
import { inlined, isOfRun, nowOf, savedDurability } from "./begin-statement.ts";
import { milliseconds } from "./statement-parts.ts";

export type TransactionStatements = ReturnType<typeof transactionStatements>;

// What a deferred constraint refuses must fail here, where it can be answered, and not COMMIT.
const check = "SET CONSTRAINTS ALL IMMEDIATE";
const [beforeCheck, afterCheck, endCheck] = [
  "SAVEPOINT countersign_check",
  "ROLLBACK TO SAVEPOINT countersign_check",
  "RELEASE SAVEPOINT countersign_check",
] as const;

// A handler may have set it to `off` or `local` for speed: then a crash, or a failover, takes a payment back that was confirmed.
const restoredDurability = `SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
  THEN coalesce(current_setting('${savedDurability}', true), 'on') ELSE current_setting('synchronous_commit') END, true)`;

/** The statements of a transaction, which go in one message where the library can. */
export function transactionStatements({ names, retentionMs }: ResolvedPostgresOptions) {
  const done = (own: OwnKeys): string => `WITH restored AS MATERIALIZED (${restoredDurability})
UPDATE ${names.idempotency} AS kept SET version = kept.version + 1, state = 'done', reason = '', until_at = ${nowOf(own)} + ${milliseconds(retentionMs)}
FROM restored WHERE ${isOwn(own)} RETURNING kept.state AS kept_as`;
  return {
    /** Gives a row for each of these keys, or one where there are none, if the transaction is still the one that has begun them. */
    lookOwn: (own: OwnKeys): string =>
      own.keys.length === 0
        ? `SELECT 1 AS is_own WHERE ${isOfRun(own.run)}`
        : `SELECT 1 AS is_own FROM ${names.idempotency} AS kept WHERE ${isOwn(own)}`,
    /**
     * $1 key, $2 token. Gives how many commands of the transaction may have written since its key was. The server counts each statement that
     * can write, also one inside of a function; `cmin` is that count for a row, which this writes once more.
     */
    writtenCommands: `WITH begun AS MATERIALIZED (SELECT kept.key, kept.cmin::text::bigint AS command FROM ${names.idempotency} AS kept
  WHERE kept.key = $1 AND kept.token = $2)
UPDATE ${names.idempotency} AS kept SET version = kept.version + 1 FROM begun WHERE kept.key = begun.key
RETURNING (kept.cmin::text::bigint - begun.command - 1)::text AS commands`,
    keepLast: (own: OwnKeys): readonly string[] => [check, done(own)],
    /** Of work without keys. Gives one row, unless the transaction is another one. */
    keepNothing: (run: string): readonly string[] => [
      check,
      `WITH restored AS MATERIALIZED (${restoredDurability}) SELECT 'done' AS kept_as FROM restored WHERE ${isOfRun(run)}`,
    ],
    // The rollback leaves the constraints deferred for the handlers to come, and what they check to COMMIT.
    keepSome: (own: OwnKeys): readonly string[] => [beforeCheck, check, afterCheck, endCheck, done(own)],
  };
}

/** Keys and their owner's tokens, as stored. */
export interface OwnKeys {
  readonly run: string;
  readonly keys: readonly { readonly key: string; readonly token: string }[];
  /** In place of the server's clock. */
  readonly now?: string | undefined;
}

/**
 * The keys that this very transaction runs: after a COMMIT or ROLLBACK of the handler's own the transaction is another one, or there is none. By
 * texts, not by a join: the planner would read the whole table for it. No token is another key's.
 */
function isOwn({ keys, run }: OwnKeys): string {
  const [names, tokens] = [keys.map(({ key }) => key), keys.map(({ token }) => token)];
  return `kept.key ${isOneOf(names)} AND kept.token ${isOneOf(tokens)} AND kept.state = 'running'
  AND ${isOfRun(run)}`;
}

function isOneOf(texts: readonly string[]): string {
  const all = texts.map(inlined);
  return all.length === 1 ? `= ${all[0]}` : `= ANY (ARRAY[${all.join(", ")}]::text[])`;
}
