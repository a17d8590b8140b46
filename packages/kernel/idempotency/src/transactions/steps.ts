import { isPromiseLike } from "@countersign/core/internal";
import type { Awaitable } from "../store.ts";
import { isTransactionBroken } from "../refusals.ts";
import type { TransactionFault, TransactionMode, TransactionStore } from "./transaction-store.ts";

/** Steps that run with promises or without: `yield*` each answer through {@link answerOf}. */
export type Steps<T> = Generator<unknown, T, never>;

/** Awaits an answer in asynchronous steps; in synchronous ones it must be no promise. */
export function* answerOf<T>(answer: Awaitable<T>): Generator<Awaitable<T>, T, T> {
  return yield answer;
}

/** Runs steps across promises. Rejects at the first answer after `isGivenUp`: after that not even a catch or finally block of the steps runs. */
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
    if (isGivenUp()) throw givenUp();
    step = resume();
  }
  return step.value;
}

function never(): boolean {
  return false;
}

/** The error of a run that is given up. */
export function givenUp(): Error {
  return new Error("the steps were given up before they had ended");
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

/** Runs steps as a store of this mode does: with promises, or in one turn. */
export function runStepsIn<T>(mode: "sync", steps: Steps<T>): T;
export function runStepsIn<T>(mode: "async", steps: Steps<T>): Promise<T>;
export function runStepsIn<T>(mode: TransactionMode, steps: Steps<T>): T | Promise<T>;
export function runStepsIn<T>(mode: TransactionMode, steps: Steps<T>): T | Promise<T> {
  return mode === "sync" ? runStepsNow(steps) : runSteps(steps);
}

/** The outcome on `countersign:store` of what others or the handler have caused: one of these, no fault of the store. */
export function outcomeOf(
  store: Pick<TransactionStore<never>, "faultOf">,
  ...outcomes: readonly TransactionFault[]
): (error: unknown) => string | undefined {
  return (error) => {
    const isOf = isTransactionBroken(error) ? "refused" : store.faultOf(error);
    return outcomes.find((fault) => fault === isOf);
  };
}
