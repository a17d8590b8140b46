import { AssertionError } from "node:assert/strict";
import type { Awaitable } from "@countersign/idempotency";
import type { ContractNonceStore, IdempotencyStoreHarness, StoreHarness } from "./harness.ts";

// How much later than needed a case looks: clocks of engines are rounded to milliseconds, and timers may run early by one.
const marginMs = 25;

/** Resolves after so many milliseconds of real time. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Lets `ms` pass on the store's clock, and a little more. */
export async function pass(harness: StoreHarness<unknown>, ms: number): Promise<void> {
  if (harness.advance === undefined) await pause(ms + marginMs);
  else await harness.advance(ms + marginMs);
}

/** Moves the store's clock by exactly `ms`. */
export async function advance(harness: StoreHarness<unknown>, ms: number): Promise<void> {
  if (harness.advance === undefined) throw new Error("only cases that need the clock move it exactly");
  await harness.advance(ms);
}

/** One more store on the same data. */
export async function anotherOf<Store>(harness: StoreHarness<Store>): Promise<Store> {
  if (harness.another === undefined) throw new Error("only cases that need another store ask for it");
  return harness.another();
}

/** Leaves the store no room. */
export async function fillOf(harness: StoreHarness<unknown>): Promise<void> {
  if (harness.fill === undefined) throw new Error("only cases that need a full store fill it");
  await harness.fill();
}

/** Removes what has ended. */
export async function pruneOf(store: ContractNonceStore): Promise<number> {
  if (store.prune === undefined) throw new Error("only cases that need pruning prune");
  return store.prune();
}

/** For how long the store remembers a done key. */
export function retentionMsOf({ store }: IdempotencyStoreHarness<unknown>): number {
  if (store.retentionMs === undefined) throw new Error("only cases that need the retention ask for it");
  return store.retentionMs;
}

/** What `promise` resolves to, or an AssertionError when that takes longer than `ms`. */
export async function within<T>(ms: number, promise: Promise<T>, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new AssertionError({ message: `${message} (within ${ms} ms)` }));
    }, ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** How a call ended, also one that throws before it returns a promise. */
export type Outcome<T> =
  | { readonly value: T; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: { readonly thrown: unknown } };

/** Calls and waits; never throws. */
export async function outcomeOf<T>(call: () => Awaitable<T>): Promise<Outcome<T>> {
  try {
    return { value: await call() };
  } catch (thrown) {
    return { error: { thrown } };
  }
}
