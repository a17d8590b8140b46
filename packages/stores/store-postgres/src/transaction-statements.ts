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
  const free = (call: string): string => freeing(names.idempotency, inlined(call), retentionMs);
  const kept = (call: string, state: "done" | "free"): string => `${asked(inlined(call))}
SELECT kept.key FROM ${names.idempotency} AS kept, undone WHERE ${isOwn} AND kept.state = '${state}'`;
  return {
    savepoint,
    free,
    /** Gives the keys that their tokens have done. */
    done: (call: string): string => kept(call, "done"),
    begin: (call: string): string => `SELECT ${names.begin}(${call}) AS answer`,
    keepLast: [check, release],
    // The rollback leaves the constraints deferred for the handlers to come, and what they check to COMMIT.
    keepSome: [beforeCheck, check, afterCheck, release, savepoint],
    /** Gives the keys that are free now, by a statement that sees what triggers have made of the one before. */
    // Outside of the savepoint: the next handler's rollback must not make the key done again.
    undo: (call: string, more: boolean): readonly string[] => [
      "ROLLBACK TO SAVEPOINT countersign",
      release,
      free(call),
      kept(call, "free"),
      ...(more ? [savepoint] : []),
    ],
  };
}

/** As `release` of lease mode: a retry that fails must not remove an operator's decision. */
function freeing(idempotency: string, call: string, retentionMs: number): string {
  return `${asked(call)}
UPDATE ${idempotency} AS kept SET state = 'free',
  until_at = undone.now + CASE WHEN kept.decision IS NULL THEN ${milliseconds(fenceMemoryMs)} ELSE ${milliseconds(retentionMs)} END
FROM undone WHERE ${isOwn} AND kept.state = 'done'`;
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
