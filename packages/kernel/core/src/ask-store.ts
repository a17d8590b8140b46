import { inTime, isPromiseLike } from "./deadlines.ts";
import { guardChannel } from "./diagnostics.ts";
import { storeTrace, traced, type StoreTrace } from "./traces.ts";
import { noteStoreTime } from "./verdict.ts";

/** One call of a store: what it is, and what becomes of its failure. */
export interface StoreStep {
  /** What the store calls itself. Default `other`. */
  readonly engine: string | undefined;
  /** The word for the call on `countersign:store`. */
  readonly step: string;
  /** How long the answer is waited for, in milliseconds. */
  readonly timeoutMs: number;
  /** What errors call the store, such as `the key store`. */
  readonly name: string;
  /** Returns what is thrown in place of the store's own error, or of the one for a late answer. Default: that error. */
  readonly failure?: ((cause: unknown) => unknown) | undefined;
  /** The request whose verdict counts the time as `storeMs`. */
  readonly req?: object | undefined;
}

/**
 * Asks a store once: the one place that traces a call, bounds its time and turns its failure into ours. An answer that is there at
 * once is returned as it is, so that a synchronous transaction can use it. A call that is late goes on: its effect may come later.
 */
export function askStore<T>(asked: StoreStep, call: () => T | PromiseLike<T>): T | Promise<T> {
  const { failure, req } = asked;
  const startedAtMs = req !== undefined && guardChannel.hasSubscribers ? performance.now() : 0;
  try {
    const answer = storeTrace.hasSubscribers ? tracedAnswer(asked, call) : timelyAnswer(asked, call);
    if (isPromiseLike(answer)) {
      return failure === undefined && startedAtMs === 0 ? answer : laterAnswer(asked, answer, startedAtMs);
    }
    noteTime(asked, startedAtMs);
    return answer;
  } catch (error) {
    noteTime(asked, startedAtMs);
    throw failure === undefined ? error : failure(error);
  }
}

async function laterAnswer<T>(asked: StoreStep, answer: Promise<T>, startedAtMs: number): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw asked.failure === undefined ? error : asked.failure(error);
  } finally {
    noteTime(asked, startedAtMs);
  }
}

function noteTime({ req }: StoreStep, startedAtMs: number): void {
  if (req !== undefined && startedAtMs !== 0) noteStoreTime(req, performance.now() - startedAtMs);
}

function timelyAnswer<T>(asked: StoreStep, call: () => T | PromiseLike<T>): T | Promise<T> {
  return inTime(call(), asked.timeoutMs, () => lateError(asked));
}

/** As {@link timelyAnswer}, and one trace, which is over when the caller has its answer. */
function tracedAnswer<T>(asked: StoreStep, call: () => T | PromiseLike<T>): T | Promise<T> {
  const { engine = "other", step, timeoutMs } = asked;
  const context: StoreTrace = { engine, step };
  let isLate = false;
  const late = (): Error => {
    isLate = true;
    return lateError(asked);
  };
  return traced(storeTrace, context, {
    work: () => inTime(call(), timeoutMs, late),
    outcomeOf: () => "ok",
    faultOf: () => (isLate ? "timeout" : "error"),
  });
}

function lateError({ name, timeoutMs }: StoreStep): Error {
  return new Error(`${name} did not answer within ${timeoutMs} ms`);
}
