import type { Logger } from "pino";
import type { BankRail } from "./bank-rail.ts";
import type { ConfirmationReporter } from "./confirmation.ts";
import type { Outbox } from "../ledgers/outbox.ts";
import type { PayoutLedger } from "../ledgers/payouts.ts";
import { startWorker, type Worker } from "./worker.ts";

/** What the workers work with. */
export interface PayoutWorkerParts {
  readonly outbox: Outbox;
  readonly ledger: PayoutLedger;
  readonly rail: BankRail;
  readonly reporter: ConfirmationReporter;
  readonly logger: Logger;
}

const shared = { timeoutMs: 10_000, pollMs: 500, random: Math.random };

/** Starts the worker that executes transfers and the one that reports how they ended. */
export function startWorkers({ outbox, ledger, rail, reporter, logger }: PayoutWorkerParts): Worker {
  const confirmations = startWorker({
    ...shared,
    kind: "confirmation",
    outbox,
    logger,
    // About a day of attempts, as the service itself gives a webhook.
    backoff: { baseMs: 1_000, maxMs: 3_600_000 },
    maxAttempts: 40,
    async run(task, signal) {
      await reporter.report(await ledger.confirmation(task.idempotencyKey), signal);
      await outbox.finish(task.id);
    },
  });
  const transfers = startWorker({
    ...shared,
    kind: "transfer",
    outbox,
    logger,
    backoff: { baseMs: 1_000, maxMs: 60_000 },
    // An acknowledged payout is never given up: only the bank's answer ends it.
    maxAttempts: Number.POSITIVE_INFINITY,
    async run(task, signal) {
      const order = await ledger.order(task.idempotencyKey);
      // Settled by an attempt that was believed dead.
      if (order === undefined) await outbox.finish(task.id);
      else await ledger.settle(task, await rail.execute(order, signal));
      confirmations.wake();
    },
  });
  return {
    wake: () => transfers.wake(),
    async stop() {
      await transfers.stop();
      await confirmations.stop();
    },
  };
}
