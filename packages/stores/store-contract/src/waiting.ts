import assert, { AssertionError } from "node:assert/strict";
import type { Awaitable } from "@countersign/idempotency";
import type { StoreHarness } from "./harness.ts";

// How much later than needed a case looks: clocks of engines are rounded to milliseconds, and timers may run early by one.
const marginMs = 25;

// How long a step is given to go wrong while a transaction is open.
const overtakeMs = 100;

export async function inTurn<T>(items: Iterable<T>, step: (item: T) => Promise<unknown>): Promise<void> {
  for (const item of items) {
    // oxlint-disable-next-line no-await-in-loop -- in turn
    await step(item);
  }
}

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

export function needed<T>(member: T | undefined): T {
  if (member === undefined) throw new Error("a case uses what it does not list in needs");
  return member;
}

/** The store, and three more on the same data. */
export async function handlesOf<Store>(harness: StoreHarness<Store>): Promise<readonly Store[]> {
  const others = await Promise.all([harness.another?.(), harness.another?.(), harness.another?.()]);
  return [harness.store, ...others.map(needed)];
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

/** How the call ended, or undefined when it still waits after that time. */
export async function soon<T>(
  outcome: Promise<Outcome<T>>,
  withinMs: number = overtakeMs,
): Promise<Outcome<T> | undefined> {
  return Promise.race([outcome, pause(withinMs).then(() => undefined)]);
}

/** Begins a transaction and resolves once it says that it is open. It waits then for what `end` tells it. */
export async function openUntilEnded<How extends string>(
  begin: (opened: () => void, ending: Promise<How>) => Promise<unknown>,
): Promise<{ end(how: How): Promise<void> }> {
  const [ending, finish] = gate<How>();
  const [open, opened] = gate<void>();
  const transaction = outcomeOf(() => begin(() => opened(), ending));
  await Promise.race([open, transaction]);
  return {
    async end(how) {
      finish(how);
      const { error } = await transaction;
      const hasEnded = `the open transaction must end as its handler does: ${String(error?.thrown)}`;
      assert.equal(error === undefined, how !== "roll back", hasEnded);
    },
  };
}

/** A promise, and what resolves it. */
function gate<T>(): readonly [Promise<T>, (value: T) => void] {
  const opens: ((value: T) => void)[] = [];
  const promise = new Promise<T>((resolve) => {
    opens.push(resolve);
  });
  return [promise, (value) => opens[0]?.(value)];
}
