import type { SqlValue } from "@countersign/idempotency";
import { leaseExpired } from "@countersign/idempotency/store";
import { standingColumns } from "./key-row.ts";
import { forStatement, microseconds } from "./statement-parts.ts";
import { bytesOf, digestOf } from "./values.ts";

/** Why a key is held whose handler ended its transaction: nobody knows what it has paid. */
const brokenReason = "transaction-broken";

interface ClaimedKey {
  readonly key: string;
  readonly token: string;
  readonly fingerprint: string;
}

export interface KeyClaim {
  /** The table. */
  readonly idempotency: string;
  readonly now: string;
  /** Of this call alone: it tells what the call took from what an earlier one with the same token did. */
  readonly mark: Buffer;
  readonly recovery: "hold" | "rerun";
  /**
   * `begun`: running, by the transaction that pays. `held`: because that has ended too early, also what this token runs; what another one
   * runs is held too, and its complete() still ends it.
   */
  readonly takenAs: "begun" | "held";
  readonly leaseMs: number;
}

/**
 * Takes free keys, and says how each of them stands now, in one statement. The rows that it finds stay locked, so that nothing is read
 * which may still be rolled back, whatever the isolation level.
 */
export function claimStatement(
  claim: KeyClaim,
  keys: readonly ClaimedKey[],
): readonly [text: string, values: SqlValue[]] {
  const { idempotency, now, mark, takenAs, leaseMs } = claim;
  const [state, reason] = takenAs === "held" ? ["held", brokenReason] : ["running", ""];
  // No owner is told of the fence: one of lease mode gets its own above this row's, and above all that were pruned. What a transaction
  // leaves was broken, and nobody knows what it has paid: `hold`.
  const row = `(?, ?, ?, '${state}', ?, ${now}, ?, '${reason}', 'hold', ${now} + ${microseconds(leaseMs)}, 1)`;
  const text = `${forStatement()}INSERT INTO ${idempotency} (digest, name, mark, state, token, fence, fingerprint, reason, recovery, until_us, version)
VALUES ${keys.map(() => row).join(",\n  ")}
ON DUPLICATE KEY UPDATE ${takeOver(claim)}
RETURNING digest, mark = ? AS is_taken, ${standingColumns(now)}`;
  const rows = inOrder(keys).map(({ digest, key, token, fingerprint }) => [
    digest,
    bytesOf(key),
    mark,
    bytesOf(token),
    bytesOf(fingerprint),
  ]);
  return [text, [...rows.flat(), mark]];
}

/** The same order in all processes: two calls with the same keys never wait for each other. */
function inOrder(keys: readonly ClaimedKey[]): readonly (ClaimedKey & { readonly digest: Buffer })[] {
  const rows = keys.map((claimed) => ({ ...claimed, digest: digestOf(claimed.key) }));
  // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
  return rows.sort((a, b) => Buffer.compare(a.digest, b.digest));
}

/** Assignments see those on their left: each column is assigned after all that ask for what it was. */
function takeOver({ now, recovery, takenAs }: KeyClaim): string {
  const isExpiredRun = `(state = 'running' AND until_us <= ${now})`;
  const isOver = `state IN ('done', 'free') AND until_us <= ${now}`;
  // Whatever is not clearly `rerun` leaves an expired run to an operator.
  const takesRun = recovery === "rerun" ? ` OR (${isExpiredRun} AND recovery = 'rerun')` : "";
  const isBroken = takenAs === "held";
  const takesOwn = isBroken ? " OR (state = 'running' AND token = VALUES(token))" : "";
  const isTaken = `state = 'free' OR (state = 'done' AND until_us <= ${now})${takesRun}${takesOwn}`;
  const leavesRun = recovery === "rerun" ? `(${isExpiredRun} AND recovery = 'hold')` : isExpiredRun;
  const [isHeld, reason] = isBroken ? ["state = 'running'", brokenReason] : [leavesRun, leaseExpired];
  const isMine = "mark = VALUES(mark)";
  return `mark = IF(${isTaken}, VALUES(mark), mark),
  version = IF(${isMine} OR (${isHeld}), version + 1, version),
  decision = IF(${isMine} AND ${isOver}, NULL, decision),
  fence = IF(${isMine}, GREATEST(fence + 1, VALUES(fence)), fence),
  fingerprint = IF(${isMine}, VALUES(fingerprint), fingerprint),
  reason = IF(${isMine}, VALUES(reason), IF(${isHeld}, '${reason}', reason)),
  state = IF(${isMine}, VALUES(state), IF(${isHeld}, 'held', state)),
  token = IF(${isMine}, VALUES(token), token),
  until_us = IF(${isMine}, VALUES(until_us), until_us),
  recovery = IF(${isMine}, VALUES(recovery), recovery)`;
}
