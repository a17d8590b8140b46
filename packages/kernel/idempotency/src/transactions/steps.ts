import { isPromiseLike } from "@countersign/core/door";
import type { Awaitable } from "../store.ts";

/** Steps that run with promises or without: `yield*` each answer through {@link answerOf}. */
export type Steps<T> = Generator<unknown, T, never>;

/** Awaits an answer in asynchronous steps; in synchronous ones it must be no promise. */
export function* answerOf<T>(answer: Awaitable<T>): Generator<Awaitable<T>, T, T> {
  return yield answer;
}

/** Runs steps across promises. */
export async function runSteps<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    let answer: unknown;
    try {
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      answer = await step.value;
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- answerOf() gives each answer the type of its own yield
    step = steps.next(answer as never);
  }
  return step.value;
}

/** Runs `work`; calls `outlived`, which must not throw, when {@link runStepsNow} ended it at a promise. */
export function* untilPromise<T>(work: () => Steps<T>, outlived: () => void): Steps<T> {
  let isEnded = false;
  try {
    const value = yield* work();
    isEnded = true;
    return value;
  } catch (error) {
    isEnded = true;
    throw error;
  } finally {
    if (!isEnded) outlived();
  }
}

/**
 * Runs steps in one turn. At a promise they end, and it is the result: whoever opened the transaction has to refuse it. Thrown back into the
 * steps it would be a handler's error that frees the key, while the handler still writes.
 */
export function runStepsNow<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) {
    const answer: unknown = step.value;
    if (isPromiseLike(answer)) {
      // Its rejection is nobody's any more, and would end the process.
      answer.then(undefined, () => {});
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- for the store alone, which throws
      steps.return(answer as never);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
      return answer as never;
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
    step = steps.next(answer as never);
  }
  return step.value;
}
