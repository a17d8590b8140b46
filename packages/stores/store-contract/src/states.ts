import { type Known, type Store, assertOk, recordOf, take } from "./claims.ts";
import { inTurn } from "./in-turn.ts";

/** A key for each state that a key can be in; what is not absent is the owner's. */
export type StateKey = "running" | "held" | "done" | "released" | "never claimed";

export const stateKeys: readonly StateKey[] = ["running", "held", "done", "released", "never claimed"];

/** The token of the owner of {@link takeOneOfEach}. */
export const owner = "owner";

/** The reason with which the owner held its key. */
const heldReason = "the bank did not answer";

/** Brings a key into each state. Returns the fence of the released one, which no reader is told. */
export async function takeOneOfEach(store: Store): Promise<number> {
  await take(store, owner, { key: "running" });
  await take(store, owner, { key: "held" });
  assertOk(await store.hold("held", owner, heldReason), "an owner must be able to hold its run");
  await take(store, owner, { key: "done" });
  assertOk(await store.complete("done", owner), "an owner must be able to complete its run");
  const fence = await take(store, owner, { key: "released" });
  assertOk(await store.release("released", owner), "an owner must be able to release its run");
  return fence;
}

/** What the store knows of the keys in each state. */
export async function recordsOfEach(store: Store): Promise<Record<string, Known | undefined>> {
  const records: Record<string, Known | undefined> = {};
  await inTurn(stateKeys, async (ofKey) => {
    records[ofKey] = await recordOf(store, ofKey);
  });
  return records;
}
