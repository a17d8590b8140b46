import { quoteForLog } from "@countersign/core";
import { publishNotice } from "@countersign/core/internal";
import type { DrainOptions, DrainReport, TransactionMode } from "@countersign/idempotency";
import { answerOf, readDrainTimeout, runStepsIn, type Steps } from "@countersign/idempotency/internal";
import type { ClaimedTask } from "@countersign/idempotency/work";
import { reasonOf, Worker, type Answered } from "@countersign/idempotency/work/internal";
import { Expectations } from "./expectations.ts";
import { factoryName, resolveOptions, type OutcomesOptions } from "./options.ts";
import { sendOutcome } from "./outcome-sender.ts";
import { outcomeOf, textOf, type OutcomeReport } from "./outcome.ts";
import { outcomeDiffers } from "./refusals.ts";

/** Reports the outcomes of payouts to the service. Made by `createOutcomes`. */
export interface Outcomes<Tx, Mode extends TransactionMode = TransactionMode> {
  /**
   * Writes an outcome in the caller's transaction: it is sent after its commit, or never. The same outcome again changes nothing; another
   * one of the same payout throws a GuardError (`outcome-differs`), as long as the first is remembered.
   */
  report(this: void, tx: Tx, outcome: OutcomeReport): Answered<Mode, void>;
  /** Notes that a payout's outcome is due within `expectWithinMs`. Throws a TypeError without that option. */
  expect(this: void, tx: Tx, payout: { readonly idempotencyKey: string }): Answered<Mode, void>;
  /** The option; undefined where none are expected. */
  readonly expectWithinMs: number | undefined;
  /** Begins to send in this process; again without effect. */
  start(this: void): void;
  /** Begins no request, awaits those running, aborts what still runs after `timeoutMs` (default 10,000). Resolves to how many did. */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

/** Makes what reports outcomes. Throws an OptionError. */
export function createOutcomes<Tx, Mode extends TransactionMode>(
  options: OutcomesOptions<Tx, Mode>,
): Outcomes<Tx, Mode> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the options of any library are read alike
  const read = resolveOptions(options as unknown as OutcomesOptions<never>);
  const { stores, onDeadLetter, onOverdue } = options;
  const { queue, expectWithinMs } = read;
  const expectations = new Expectations<Tx>(stores, read, onOverdue);
  const sender = new Worker<Tx>({
    factory: factoryName,
    queue,
    stores,
    options: read,
    workOf: (task) => ({ outside: ({ signal }) => sendOutcome(task, read, signal) }),
    onFailure(task, error, isDead) {
      if (!isDead) return notSent(task, error);
      const { body, attempt: attempts } = task;
      return onDeadLetter?.({ outcome: outcomeOf(body), attempts, reason: reasonOf(error) });
    },
  });
  const workers = [sender, expectations.worker];

  function* reported(tx: Tx, outcome: OutcomeReport): Steps<void> {
    const body = textOf(outcome);
    const id = outcome.idempotencyKey;
    const [added] = yield* answerOf(stores.work.add(tx, queue, [{ id, body }]));
    if (added?.status === "known" && added.body !== body) throw outcomeDiffers(id);
    sender.wakeSoon();
  }

  function* expected(tx: Tx, idempotencyKey: string): Steps<void> {
    yield* answerOf(expectations.add(tx, idempotencyKey));
  }

  const run = (steps: Steps<void>): Answered<Mode, void> => {
    const ran = runStepsIn(stores.work.mode, steps);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a promise where the mode has them
    return ran as Answered<Mode, void>;
  };

  return {
    report: (tx, outcome) => run(reported(tx, outcome)),
    expect: (tx, { idempotencyKey }) => run(expected(tx, idempotencyKey)),
    expectWithinMs,
    start() {
      for (const worker of workers) worker.start();
    },
    async drain(drainOptions) {
      const timeoutMs = readDrainTimeout(drainOptions, factoryName);
      const left = await Promise.all(workers.map((worker) => worker.drain(timeoutMs)));
      return { keys: left.reduce((sum, count) => sum + count, 0), claims: 0 };
    },
  };
}

function notSent({ id, attempt }: ClaimedTask, error: unknown): void {
  const message = `attempt ${attempt} to send the outcome of the payout ${quoteForLog(id)} failed: ${quoteForLog(reasonOf(error), 500)}`;
  publishNotice({ guard: factoryName, code: "outcome-not-sent", message, error });
}
