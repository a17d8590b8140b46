import { randomUUID } from "node:crypto";
import type {
  TransactionBegun,
  TransactionClaim,
  TransactionKey,
  TransactionStore,
} from "@countersign/idempotency";
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
  return { keys, recovery: "rerun", waitMs: 20_000, idleTimeoutMs: 60_000, ...rest };
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
      const isPaid = await succeeded(() => handler(tx, key), transactions);
      // oxlint-disable-next-line no-await-in-loop -- as above
      await (isPaid ? transactions.keep(tx, [key], more) : transactions.undo(tx, [key], more));
    }
    return answer;
  });
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

// An error of the engine ends the whole; any other is the handler's refusal.
async function succeeded(handler: () => Promise<unknown>, { faultOf }: Transactions): Promise<boolean> {
  try {
    await handler();
    return true;
  } catch (error) {
    if (faultOf(error) !== undefined) throw error;
    return false;
  }
}
