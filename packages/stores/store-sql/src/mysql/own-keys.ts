import type { TransactionKey } from "@countersign/idempotency";
import type { ResolvedMysqlOptions } from "./options.ts";
import { clockOf, microseconds, runVariable, type Statement } from "./statement-parts.ts";
import { bytesOf, digestOf } from "./values.ts";

/** The last statements of a transaction, of the keys that it has begun. */
export class OwnKeyStatements {
  readonly #options: ResolvedMysqlOptions<unknown>;
  readonly #now: () => string;

  constructor(options: ResolvedMysqlOptions<unknown>) {
    this.#options = options;
    this.#now = clockOf(options);
  }

  /** Makes the keys done that a transaction has begun, on the session of this run. */
  doneAll(keys: readonly TransactionKey[], run: Uint8Array): Statement {
    const { retentionMs } = this.#options;
    const done = `state = 'done', reason = '', until_us = ${this.#now()} + ${microseconds(retentionMs)}`;
    return this.#own(keys, `version = version + 1, ${done}`, run);
  }

  /** Changes nothing but the version of such keys: as many rows as there are keys while their transaction is the session's. */
  touchAll(keys: readonly TransactionKey[], run: Uint8Array): Statement {
    return this.#own(keys, "version = version + 1", run);
  }

  #own(keys: readonly TransactionKey[], changes: string, run: Uint8Array): Statement {
    const [isOwn, values] = ownedBy(keys);
    const text = `UPDATE ${this.#options.names.idempotency} FORCE INDEX (PRIMARY) SET ${changes}
WHERE ${isOwn} AND state = 'running' AND ${runVariable} = ?`;
    return [text, [...values, run]];
  }

  /** The condition that all these keys are done in what the session sees, with what triggers have made of them. */
  areDone(keys: readonly TransactionKey[]): Statement {
    const [isOwn, values] = ownedBy(keys);
    const { idempotency } = this.#options.names;
    const text = `(SELECT COUNT(*) FROM ${idempotency} FORCE INDEX (PRIMARY) WHERE ${isOwn} AND state = 'done') = ${keys.length}`;
    return [text, values];
  }
}

/** Each run of a key has a token of its own. */
function ownedBy(keys: readonly TransactionKey[]): Statement {
  const places = keys.map(() => "?").join(", ");
  const values = [...keys.map(({ key }) => digestOf(key)), ...keys.map(({ token }) => bytesOf(token))];
  return [`digest IN (${places}) AND token IN (${places})`, values];
}
