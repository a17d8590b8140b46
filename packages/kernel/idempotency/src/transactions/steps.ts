import { isPromiseLike } from "@countersign/core/door";
import type { Awaitable } from "../store.ts";

/** Steps that run with promises or without: `yield*` each answer through {@link answerOf}. */
export type Steps<T> = Generator<unknown, T, never>;

/** Awaits an answer in asynchronous steps; in synchronous ones it must be no promise. */
export function* answerOf<T>(answer: Awaitable<T>): Generator<Awaitable<T>, T, T> {
  return yield answer;
}

/** Runs steps across promises. Rejects at the first answer after `isGivenUp`: no step follows, also none of theirs for errors. */
export async function runSteps<T>(steps: Steps<T>, isGivenUp: () => boolean = never): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    let resume: () => IteratorResult<unknown, T>;
    try {
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      const answer = await step.value;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- answerOf() gives each answer the type of its own yield
      resume = () => steps.next(answer as never);
    } catch (error) {
      resume = () => steps.throw(error);
    }
    if (isGivenUp()) throw new Error("the steps were given up before they had ended");
    step = resume();
  }
  return step.value;
}

function never(): boolean {
  return false;
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
