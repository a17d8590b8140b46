import { isPromiseLike, withDeadline } from "@countersign/guard";
import type { Awaitable, IdempotencyRecord, IdempotencyStore } from "./store.ts";

/** Calls the store; an answer that is due later fails after `timeoutMs`. A store that answers at once costs no promise. */
export function callStore<T>(call: () => Awaitable<T>, timeoutMs: number): Awaitable<T> {
  const answer = call();
  return isPromiseLike(answer) ? inTime(answer, timeoutMs) : answer;
}

/** A throw as a rejection. What is there at once costs no promise. */
export function tried<T>(step: () => Awaitable<T>): Awaitable<T> {
  try {
    return step();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The late answer itself, or an error after `timeoutMs`. */
export function inTime<T>(answer: PromiseLike<T>, timeoutMs: number): Promise<T> {
  return withDeadline(
    Promise.resolve(answer),
    timeoutMs,
    () => new Error(`the idempotency store did not answer within ${timeoutMs} ms`),
  );
}

/** What the store knows of a key. Undefined when it is absent, also where a store of somebody's own says null for that. */
export function readRecord<Tx>(
  { store, storeTimeoutMs }: { readonly store: IdempotencyStore<Tx>; readonly storeTimeoutMs: number },
  key: string,
): Awaitable<IdempotencyRecord | undefined> {
  const answer = callStore(() => store.read(key), storeTimeoutMs);
  return isPromiseLike(answer) ? presentLater(answer) : (answer ?? undefined);
}

async function presentLater(
  answer: PromiseLike<IdempotencyRecord | undefined>,
): Promise<IdempotencyRecord | undefined> {
  return (await answer) ?? undefined;
}
