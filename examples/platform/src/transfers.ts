import type { Settings } from "@countersign/example-settings";
import { createOutcomes, type Outcomes } from "countersign/outcomes";
import { createTaskQueue, type TaskQueue, type WorkStores } from "@countersign/idempotency/work";
import type { Logger } from "pino";
import type { BankRail, TransferOrder } from "./bank-rail.ts";
import type { PlatformStorage } from "./engines/storage.ts";
import { payoutLedgerOn, type PayoutLedger } from "./ledgers/payouts.ts";

/** The ledger of payouts, and what follows each of them. */
export interface Payouts {
  readonly ledger: PayoutLedger;
  /** Undefined: outcomes are only logged. */
  readonly outcomes: Outcomes<object> | undefined;
  /** What executes transfers and reports outcomes: to be started, and drained. */
  readonly workers: readonly (TaskQueue<object> | Outcomes<object>)[];
}

interface PayoutParts {
  readonly storage: Pick<PlatformStorage, "work" | "database">;
  readonly rail: BankRail;
  readonly settings: Pick<Settings, "confirmationUrl" | "confirmationApiKey">;
  readonly logger: Logger;
  readonly now?: (() => number) | undefined;
}

const queue = "transfers";

/** A payout is written with the task to execute it, and its outcome with the end of that task. */
export async function openPayouts(parts: PayoutParts): Promise<Payouts> {
  const { storage, rail, settings, logger, now = Date.now } = parts;
  const { work: stores, database } = storage;
  const outcomes = confirmations(stores, settings);
  const transfers = createTaskQueue({
    stores,
    queue,
    timeoutMs: 10_000,
    pollMs: 500,
    maxBackoffMs: 60_000,
    maxAttempts: 10_000,
    async atLeastOnce({ body }, attempt) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by the ledger
      const order = JSON.parse(body) as TransferOrder;
      const outcome = await rail.execute(order, attempt.signal);
      await attempt.commit((tx) => ledger.settle(order, outcome, tx));
      if (outcomes !== undefined) return;
      const { idempotencyKey } = order;
      logger.info({ idempotencyKey, ...outcome }, "payout outcome, not sent: CONFIRMATION_URL is not set");
    },
    async onFailure({ id, attempt }, error, isDead) {
      logger.warn({ idempotencyKey: id, attempt, err: error }, "transfer failed, it will be tried again");
      // An acknowledged payout is never given up: only the bank's answer ends it.
      if (isDead) await stores.work.retry(queue, { ids: [id] });
    },
  });
  const ledger = payoutLedgerOn(database, { now, transfers, outcomes });
  // Of a process that died before it could do so itself.
  await stores.work.retry(queue, { deadSinceMs: 0 });
  return { ledger, outcomes, workers: outcomes === undefined ? [transfers] : [transfers, outcomes] };
}

const dayMs = 86_400_000;

/**
 * Method, path and payload of the service's own endpoint are agreed during integration: give its URL, and its payload as `body`.
 * About a day of attempts, as the service itself gives a webhook.
 */
function confirmations(
  stores: WorkStores<object>,
  { confirmationUrl: url, confirmationApiKey: apiKey }: PayoutParts["settings"],
): Outcomes<object> | undefined {
  if (url === undefined) return undefined;
  return createOutcomes({
    stores,
    url,
    headers: apiKey === undefined ? {} : { "x-api-key": apiKey },
    // A wrong URL or API key can be corrected within the day: nothing is refused for good.
    answers: (status) => (status >= 200 && status <= 299 ? "sent" : status === 409 ? "known" : "retry"),
    timeoutMs: 10_000,
    maxAttempts: 40,
    expectWithinMs: dayMs,
  });
}
