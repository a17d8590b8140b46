import type { NonceClaim, NonceStore } from "@countersign/core";
import type { SqlValue } from "@countersign/idempotency";
import type { Engine } from "./engine.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { forStatement, isAlone, microseconds } from "./statement-parts.ts";
import { bytesOf, digestOf, isTrue, singleRow } from "./values.ts";

export interface MysqlNonceStore extends NonceStore {
  claim(claim: NonceClaim): Promise<"fresh" | "seen">;
  /** Removes the nonces whose retention has ended. Returns how many. */
  prune(): Promise<number>;
  /** Ends the pruning timer. A later call throws. */
  close(): void;
}

const name = "mysql nonce store";

export class NonceTable<Tx> extends PrunedTable<Tx> implements MysqlNonceStore {
  constructor(engine: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    super(name, engine, options, { table: options.names.nonces, isExpired, columns: [] });
  }

  async claim(claim: NonceClaim): Promise<"fresh" | "seen"> {
    this.gate.assertNonce(claim);
    const { names, lockTimeoutMs } = this.options;
    const statement = nonceStatement({ nonces: names.nonces, now: this.now(), lockTimeoutMs }, claim);
    const { is_own: isOwn } = singleRow(await this.alone(...statement));
    return isTrue(isOwn) ? "fresh" : "seen";
  }
}

/** A variable of the session, by which the next statements of a script are asked for. */
export const isOwnNonce = "@countersign_own_nonce";

interface NonceMoment {
  /** The table. */
  readonly nonces: string;
  readonly now: string;
  /** Undefined in a transaction whose session has a bound. */
  readonly lockTimeoutMs?: number | undefined;
}

/** Gives one row: `is_own`, also in {@link isOwnNonce}. A nonce lives through its last microsecond. The second assignment sees the token of the first. */
export function nonceStatement(
  { nonces, now, lockTimeoutMs }: NonceMoment,
  { scope, nonce, token, retainMs }: NonceClaim,
): readonly [text: string, values: SqlValue[]] {
  const text = `${forStatement(lockTimeoutMs)}INSERT INTO ${nonces} (digest, token, until_us) VALUES (?, ?, ${now} + ${microseconds("?")})
ON DUPLICATE KEY UPDATE token = IF(until_us < ${now}, VALUES(token), token),
  until_us = IF(token = VALUES(token), GREATEST(until_us, VALUES(until_us)), until_us)
RETURNING ${isOwnNonce} := token = ? AS is_own, ${isAlone}`;
  return [text, [digestOf(scope, nonce), bytesOf(token), retainMs, bytesOf(token)]];
}

function isExpired(now: string): string {
  return `until_us < ${now}`;
}
