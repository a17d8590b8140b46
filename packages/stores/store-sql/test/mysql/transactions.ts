import { randomUUID } from "node:crypto";
import type {
  Database,
  TransactionBegun,
  TransactionClaim,
  TransactionKey,
  TransactionStore,
} from "@countersign/idempotency";
import { isGuardError } from "@countersign/core";
import type { PoolConnection } from "mysql2/promise";

export type Transactions = TransactionStore<PoolConnection, "async">;

export function newKey(key: string): TransactionKey {
  return { key, token: randomUUID(), fingerprint: `of ${key}`.slice(0, 128) };
}

export function newNonce(nonce: string, token: string = randomUUID()) {
  return { scope: "s", nonce, token, retainMs: 300_000 };
}

export function claimOf(
  keys: readonly TransactionKey[],
  rest: Partial<TransactionClaim> = {},
): TransactionClaim {
  return { keys, recovery: "rerun", leaseMs: 60_000, waitMs: 20_000, idleTimeoutMs: 60_000, ...rest };
}

/** Payouts of these keys, by a handler that is called for each begun one; as the middlewares do it, without repetitions. */
export async function pay(
  transactions: Transactions,
  claim: TransactionClaim,
  handler: (tx: PoolConnection, key: TransactionKey) => Promise<unknown> = () => Promise.resolve(),
): Promise<TransactionBegun> {
  return transactions.run(async (tx) => {
    const answer = await transactions.begin(tx, claim);
    const begun = claim.keys.filter((_, index) => answer.keys[index]?.status === "begun");
    for (const [index, key] of begun.entries()) {
      const more = index < begun.length - 1;
      // oxlint-disable-next-line no-await-in-loop -- one handler after the other
      await run(() => handler(tx, key), { transactions, tx, key });
      // oxlint-disable-next-line no-await-in-loop -- as above
      await transactions.keep(tx, [key], more);
    }
    return answer;
  });
}

/** Sends a text that a handler's `tx` does not take: what a store does when one gets through all the same. */
export async function pastGate(
  { database }: Pick<Transactions, "database">,
  tx: PoolConnection,
  text: string,
): Promise<void> {
  await (database as Database<PoolConnection>).query(tx, text, []);
}

/** The only key's answer. */
export async function payOne(
  transactions: Transactions,
  key: TransactionKey,
  handler?: (tx: PoolConnection) => Promise<unknown>,
  rest?: Partial<TransactionClaim>,
): Promise<TransactionBegun["keys"][number]["status"] | "seen"> {
  const { keys } = await pay(transactions, claimOf([key], rest), handler);
  return keys[0]?.status ?? "seen";
}

/** The handler's own error is thrown once its transaction is found open; an error of the engine as it is. */
async function run(
  handler: () => Promise<unknown>,
  { transactions, tx, key }: { transactions: Transactions; tx: PoolConnection; key: TransactionKey },
): Promise<void> {
  try {
    await handler();
  } catch (error) {
    const fault = transactions.faultOf(error);
    if (fault === "conflict" || fault === "locked") throw error;
    try {
      await transactions.assertOpen(tx, [key]);
    } catch (ended) {
      if (isTransactionBroken(ended)) throw ended;
    }
    throw error;
  }
}

function isTransactionBroken(error: unknown): boolean {
  return isGuardError(error) && error.code === "transaction-broken";
}
