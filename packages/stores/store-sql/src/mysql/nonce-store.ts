import type { NonceClaim } from "@countersign/core";
import type { ServerNonceStore } from "../server-stores.ts";
import type { Engine } from "./engine.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { PrunedTable } from "./pruning.ts";
import { microseconds, waitingFor, zeroIfAlone, type Statement } from "./statement-parts.ts";
import { bytesOf, digestOf, isTrue } from "./values.ts";

const name = "mysql nonce store";

export class NonceTable<Tx> extends PrunedTable<Tx> implements ServerNonceStore {
  constructor(engine: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    super(name, engine, options, { table: options.names.nonces, isExpired, columns: [] });
  }

  async claim(claim: NonceClaim): Promise<"fresh" | "seen"> {
    this.gate.assertNonce(claim);
    const { names, lockTimeoutMs } = this.options;
    const moment = { nonces: names.nonces, now: this.now() };
    const [text, values] = nonceStatement(moment, claim, [zeroIfAlone, []]);
    if (isNewNonce(await this.server.change(name, `${waitingFor(lockTimeoutMs)}${text}`, values)))
      return "fresh";
    const [row] = await this.alone(...ownNonce(moment, claim));
    return row !== undefined && isTrue(row["is_own"]) ? "fresh" : "seen";
  }
}

interface NonceMoment {
  /** The table. */
  readonly nonces: string;
  readonly now: string;
}

/**
 * Adds a nonce, or takes over one whose last microsecond is over. Each row that it finds changes, by a microsecond at least: so the number of
 * changed rows tells a new one from one that was there, whatever the connection counts. No assignment reads what another one has
 * assigned. `proof` is 0 where the statement may take effect.
 */
export function nonceStatement(
  { nonces, now }: NonceMoment,
  { scope, nonce, token, retainMs }: NonceClaim,
  [proof, proofValues]: Statement,
): Statement {
  const until = `${now} + ${microseconds("?")}`;
  const text = `INSERT INTO ${nonces} (digest, token, until_us) VALUES (?, ?, ${until} + ${proof})
ON DUPLICATE KEY UPDATE token = IF(until_us < ${now}, ?, token),
  until_us = IF(until_us < ${now} OR token = ?, GREATEST(until_us + 1, ${until}), until_us + 1)`;
  const own = bytesOf(token);
  return [text, [digestOf(scope, nonce), own, retainMs, ...proofValues, own, own, retainMs]];
}

/** By the number of rows that {@link nonceStatement} has changed: 2 where it found one. */
export function isNewNonce(changed: number): boolean {
  return changed === 1;
}

/** Gives `is_own` for a nonce that was there. */
export function ownNonce(
  { nonces }: Pick<NonceMoment, "nonces">,
  { scope, nonce, token }: NonceClaim,
): Statement {
  return [
    `SELECT token = ? AS is_own FROM ${nonces} WHERE digest = ?`,
    [bytesOf(token), digestOf(scope, nonce)],
  ];
}

function isExpired(now: string): string {
  return `until_us < ${now}`;
}
