import type { TransactionKey } from "@countersign/idempotency";
import { fenceMemoryMs } from "@countersign/idempotency/store";
import type { ResolvedMysqlOptions } from "./options.ts";
import { forStatement, isAlone, microseconds } from "./statement-parts.ts";
import { bytesOf, digestOf } from "./values.ts";

const columns = "digest, name, mark, state, token, fence, fingerprint, reason, recovery, until_us, version";

type Names = Pick<ResolvedMysqlOptions<unknown>, "names" | "lockTimeoutMs" | "retentionMs">;

/** By which a transaction's key is held, at one moment, `now`. Values: digest, token; reason. */
export function holdStatements({ names: { idempotency }, lockTimeoutMs }: Names, now: string) {
  // Gives the row when it was changed, and none otherwise: an UPDATE cannot. The SELECT locks what it finds, and `seen` is the row before.
  // All that paid a done key has committed with it.
  const change = (set: string, bound: string): string => `${bound}INSERT INTO ${idempotency} (${columns})
SELECT ${columns} FROM ${idempotency} AS seen WHERE seen.digest = ? AND seen.token = ? AND seen.state <> 'free' FOR UPDATE
ON DUPLICATE KEY UPDATE version = seen.version + 1, ${set} RETURNING state, ${isAlone}`;
  const holdRun = `state = IF(seen.state = 'done', 'done', 'held'), reason = IF(seen.state = 'done', '', ?),
  until_us = IF(seen.state = 'done', seen.until_us, ${now})`;
  return {
    holdRun: change(holdRun, forStatement(lockTimeoutMs)),
    /** The same in the transaction itself, where no key has committed as done. */
    holdRunIn: change(`state = 'held', reason = ?, until_us = ${now}`, forStatement()),
  };
}

/** Frees keys that a transaction has begun. Values: {@link identitiesOf}. */
export function freeStatement({ names, retentionMs }: Names, now: string, count: number): string {
  const memory = `IF(decision IS NULL, ${microseconds(fenceMemoryMs)}, ${microseconds(retentionMs)})`;
  // By the primary key: a walk through the table would wait for other transactions' rows.
  return `${forStatement()}UPDATE ${names.idempotency} FORCE INDEX (PRIMARY)
SET version = version + 1, state = 'free', until_us = ${now} + ${memory} WHERE ${isRunBy(count)}`;
}

/** Makes keys done that a transaction has begun, and gives them as they are then. Values: {@link identitiesOf}. */
export function doneStatement(
  { names: { idempotency }, retentionMs }: Names,
  now: string,
  count: number,
): string {
  // An UPDATE gives no rows: what triggers have made of them would not be seen.
  return `${forStatement()}INSERT INTO ${idempotency} (${columns})
SELECT ${columns} FROM ${idempotency} AS seen FORCE INDEX (PRIMARY) WHERE ${isRunBy(count)} FOR UPDATE
ON DUPLICATE KEY UPDATE version = seen.version + 1, state = 'done', reason = '', until_us = ${now} + ${microseconds(retentionMs)}
RETURNING state AS kept_as`;
}

/** Digests, then tokens. */
export function identitiesOf(keys: readonly TransactionKey[]): Buffer[] {
  return [...keys.map(({ key }) => digestOf(key)), ...keys.map(({ token }) => bytesOf(token))];
}

/** Gives a row for each of these keys that is running all the same. Values as above. */
export function stillRunningStatement({ names }: Names, count: number): string {
  return `SELECT digest AS still_running FROM ${names.idempotency} FORCE INDEX (PRIMARY) WHERE ${isRunBy(count)}`;
}

function isRunBy(count: number): string {
  const places = Array.from({ length: count }, () => "?").join(", ");
  return `digest IN (${places}) AND token IN (${places}) AND state = 'running'`;
}
