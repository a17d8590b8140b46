import { withDeadline } from "@countersign/core";
import { explainClaim, type Explanation } from "@countersign/explain";
import type { IdempotencyStore } from "@countersign/idempotency";

const timeoutMs = 5000;

/** What the stores say now of a key; of the first that has it. Undefined where none does, or none answers. */
export async function claimNow(
  stores: ReadonlyMap<string, IdempotencyStore>,
  key: string,
  nowMs: number,
): Promise<Explanation | undefined> {
  if (stores.size === 0) return undefined;
  const records = await Promise.allSettled([...stores.values()].map((store) => read(store, key)));
  const record = records
    .map((answer) => (answer.status === "fulfilled" ? answer.value : undefined))
    .find((found) => found !== undefined);
  const isSilent = records.some(({ status }) => status === "rejected");
  return record === undefined && isSilent ? undefined : explainClaim({ key, record, nowMs });
}

async function read(
  store: IdempotencyStore,
  key: string,
): Promise<Awaited<ReturnType<IdempotencyStore["read"]>>> {
  return withDeadline(
    Promise.resolve(store.read(key)),
    timeoutMs,
    () => new Error(`no answer within ${timeoutMs} ms`),
  );
}
