import { isPromiseLike, withDeadline } from "@countersign/guard";
import type { Awaitable } from "./store.ts";

/** Calls the store; an answer that is due later fails after `timeoutMs`. A store that answers at once costs no promise. */
export function callStore<T>(call: () => Awaitable<T>, timeoutMs: number): Awaitable<T> {
  const answer = call();
  return isPromiseLike(answer) ? inTime(answer, timeoutMs) : answer;
}

/** The late answer itself, or an error after `timeoutMs`. */
export function inTime<T>(answer: PromiseLike<T>, timeoutMs: number): Promise<T> {
  return withDeadline(
    Promise.resolve(answer),
    timeoutMs,
    () => new Error(`the idempotency store did not answer within ${timeoutMs} ms`),
  );
}
