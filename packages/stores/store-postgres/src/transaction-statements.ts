import { fenceMemoryMs } from "@countersign/idempotency/store";
import type { ResolvedPostgresOptions } from "./options.ts";
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

/** The statements of a transaction, which go in one message where the library can. */
export function transactionStatements({ names, retentionMs }: ResolvedPostgresOptions) {
  const free = (call: string): string => freed(names.idempotency, inlined(call), retentionMs);
  return {
    savepoint,
    free,
    /** Gives the keys that their tokens have done. */
    done: (call: string): string => `${asked(inlined(call))}
SELECT kept.key FROM ${names.idempotency} AS kept, undone WHERE ${isDone}`,
    begin: (call: string, more = ""): string => `SELECT ${names.begin}(${call}) AS answer${more}`,
    keepLast: [check, release],
    // The rollback leaves the constraints deferred for the handlers to come, and what they check to COMMIT.
    keepSome: [beforeCheck, check, afterCheck, release, savepoint],
    // Freed outside of the savepoint: the next handler's rollback must not make the key done again.
    undo: (call: string, more: boolean): readonly string[] => [
      "ROLLBACK TO SAVEPOINT countersign",
      release,
      free(call),
      ...(more ? [savepoint] : []),
    ],
  };
}

/** Gives a row for each key. As `release` of lease mode: a retry that fails must not remove an operator's decision. */
function freed(idempotency: string, call: string, retentionMs: number): string {
  return `${asked(call)}
UPDATE ${idempotency} AS kept SET state = 'free',
  until_at = undone.now + CASE WHEN kept.decision IS NULL THEN ${milliseconds(fenceMemoryMs)} ELSE ${milliseconds(retentionMs)} END
FROM undone WHERE ${isDone}
RETURNING kept.key`;
}

function asked(call: string): string {
  return `WITH asked AS MATERIALIZED (SELECT ${call}::jsonb AS call),
undone AS MATERIALIZED (
  SELECT item ->> 'key' AS key, item ->> 'token' AS token, coalesce((asked.call ->> 'now')::timestamptz, clock_timestamp()) AS now
  FROM asked, jsonb_array_elements(asked.call -> 'keys') AS items (item))`;
}

const isDone = "kept.key = undone.key AND kept.token = undone.token AND kept.state = 'done'";

/** The text as SQL for messages without parameters. In hexadecimal: no setting of the server reads that otherwise. */
export function inlined(text: string): string {
  return `convert_from(decode('${Buffer.from(text).toString("hex")}', 'hex'), 'UTF8')`;
}
