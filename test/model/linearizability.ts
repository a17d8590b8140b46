import { isDeepStrictEqual } from "node:util";
import type { ReferenceStore } from "../../packages/stores/store-contract/dist/model/reference-store.js";
import type { Step } from "../../packages/stores/store-contract/dist/model/step.js";

/** The answer of a step that failed: it took effect, or it did not. */
export const failed: unique symbol = Symbol("failed");

/** A step as its sender saw it: when it was sent, when its answer came, on a counter that all senders share. */
export interface Call {
  readonly step: Step;
  readonly answer: unknown;
  readonly sentAt: number;
  readonly answeredAt: number;
}

/**
 * Whether there is an order of the calls in which the reference gives every one of these answers, and in which no call comes
 * before one that was answered before it was sent. The search of Wing and Gong: histories must be short.
 */
export function isLinearizable(calls: readonly Call[], before: ReferenceStore): boolean {
  if (calls.length === 0) return true;
  const firstAnswer = Math.min(...calls.map(({ answeredAt }) => answeredAt));
  return calls.some((call) => {
    if (call.sentAt > firstAnswer) return false;
    const others = calls.filter((other) => other !== call);
    const after = before.clone();
    const answer = after.apply(call.step, call.answer);
    if (call.answer === failed) return isLinearizable(others, after) || isLinearizable(others, before);
    return isDeepStrictEqual(answer, call.answer) && isLinearizable(others, after);
  });
}
