import type { IdempotencyOwnership, IdempotencyStore } from "@countersign/idempotency";
import { type Store, key } from "./claims.ts";
import type { IdempotencyStoreHarness } from "./harness.ts";
import type { PayStep } from "./model/step.ts";
import { type Outcome, needed, pause } from "./waiting.ts";

// How long a step is given to go wrong while the transaction is open.
const overtakeMs = 100;

export async function completeIn(
  store: Store,
  tx: unknown,
  token: string,
  ofKey: string = key,
): Promise<IdempotencyOwnership> {
  return needed(await store.completeIn?.(tx, ofKey, token));
}

/** What a completion in a transaction of its own answers, which commits whatever that is. */
export async function completeAlone(
  harness: IdempotencyStoreHarness<unknown>,
  token: string,
  ofKey: string = key,
): Promise<IdempotencyOwnership> {
  const answers: IdempotencyOwnership[] = [];
  await harness.transaction?.(async (tx) => {
    answers.push(await completeIn(harness.store, tx, token, ofKey));
  });
  const [answer] = answers;
  if (answer === undefined) throw new Error("transaction() of the harness must run its work");
  return answer;
}

/** The transaction of a step that pays, by this store: again after an `ok`, and that must be lost. `crash` cuts it off. */
export async function payIn<Tx>(
  harness: Pick<IdempotencyStoreHarness<Tx>, "transaction">,
  store: IdempotencyStore<Tx>,
  { key: ofKey, token, ending }: PayStep,
  crash?: (tx: Tx) => unknown,
): Promise<unknown> {
  let answer: unknown;
  const rolledBack = new Error("rolled back");
  try {
    await harness.transaction?.(async (tx) => {
      answer = await store.completeIn?.(tx, ofKey, token);
      // Of a key that was not its own another one may have a claim by now.
      const again = answer === "ok" ? await store.completeIn?.(tx, ofKey, token) : "lost";
      if (again !== "lost") answer = `ok, and ${String(again)} again`;
      if (ending === "crash") await crash?.(tx);
      if (ending !== "commit") throw rolledBack;
    });
  } catch (error) {
    if (error !== rolledBack) throw error;
  }
  return answer;
}

/** How the call ended, or undefined when it still waits after that time. */
export async function soon<T>(
  outcome: Promise<Outcome<T>>,
  withinMs: number = overtakeMs,
): Promise<Outcome<T> | undefined> {
  return Promise.race([outcome, pause(withinMs).then(() => undefined)]);
}
