import type { Sql } from "../sql.ts";
import type { ResolvedDeliveryOptions } from "./options.ts";
import type { DeliveryProgress, DueDelivery, QueueTables } from "./queue-tables.ts";
import { exchangeWebhook, type WebhookAnswer, type WebhookOptions } from "./send-webhook.ts";
import type { TamperedWebhookPart } from "./webhook-request.ts";

/** What {@link DeliverySender} needs. */
export interface DeliverySenderInit {
  readonly sql: Sql;
  readonly tables: QueueTables;
  readonly options: ResolvedDeliveryOptions;
  readonly clock: () => number;
  readonly ca: string | Buffer | undefined;
}

/** Which webhook goes where. */
export type SentDelivery = Pick<DueDelivery, "id" | "endpointId" | "webhookId">;

/** Sends a due delivery and writes down what became of it. */
export class DeliverySender {
  readonly #init: DeliverySenderInit;

  constructor(init: DeliverySenderInit) {
    this.#init = init;
  }

  /** Rejects only when the database fails. What `signal` cuts off leaves no trace: the delivery stays due. */
  async send(due: DueDelivery, signal: AbortSignal): Promise<void> {
    const { sql, tables, options, clock } = this.#init;
    const atMs = Math.floor(clock());
    const request = this.#request(due);
    const requests = options.twiceAtOnce ? [request, request] : [request];
    const sent = await Promise.all(requests.map((init) => exchangeWebhook({ ...init, signal })));
    const delivered = sent.some(({ answer }) => isDelivery(answer));
    if (signal.aborted && !delivered) return;
    const progress = this.#progress(due, delivered);
    sql.atomically(() => {
      for (const { answer, exchange } of sent)
        tables.addAttempt({ deliveryId: due.id, atMs, answer, exchange });
      tables.progress(due.id, progress);
    });
  }

  /** Sends a webhook once with one part spoilt, and writes down the answer alone: the delivery goes on as it would have. */
  async spoil(delivery: SentDelivery, spoilt: TamperedWebhookPart, signal?: AbortSignal): Promise<void> {
    const { sql, tables, clock } = this.#init;
    const atMs = Math.floor(clock());
    const request = { ...this.#request({ ...delivery, rounds: 1 }), tamper: spoilt, signal };
    const { answer, exchange } = await exchangeWebhook(request);
    sql.atomically(() => tables.addAttempt({ deliveryId: delivery.id, atMs, answer, exchange, spoilt }));
  }

  // Read anew for each attempt: the same bytes every time.
  #request({
    endpointId,
    webhookId,
    rounds,
  }: Pick<DueDelivery, "endpointId" | "webhookId" | "rounds">): WebhookOptions {
    const { tables, options, ca } = this.#init;
    return {
      ...tables.endpoint(endpointId),
      body: tables.body(webhookId),
      ca,
      timeoutMs: options.timeoutMs,
      dropAnswer: rounds === 0 && options.random() < options.dropConnection,
    };
  }

  #progress(due: DueDelivery, delivered: boolean): DeliveryProgress {
    const { options, clock } = this.#init;
    const nowMs = clock();
    // What was sent once more is not repeated, whatever came of it.
    if (due.state === "delivered") return { state: "delivered", dueMs: undefined };
    if (delivered) {
      const again = options.random() < options.duplicate;
      return { state: "delivered", dueMs: again ? Math.ceil(nowMs + options.initialDelayMs) : undefined };
    }
    const dueMs = Math.ceil(nowMs + backoffMs(due.rounds, options));
    return dueMs > due.expiresMs ? { state: "failed", dueMs: undefined } : { state: "pending", dueMs };
  }
}

function isDelivery({ status = 0 }: WebhookAnswer): boolean {
  return status >= 200 && status <= 299;
}

const jitter = 0.25;

/**
 * The delay after so many failures before this one: doubled each time up to `maxDelayMs`, less up to a quarter at random. A
 * quarter keeps each delay below the next as long as they double.
 */
export function backoffMs(
  failuresBefore: number,
  {
    initialDelayMs,
    maxDelayMs,
    random,
  }: Pick<ResolvedDeliveryOptions, "initialDelayMs" | "maxDelayMs" | "random">,
): number {
  const full = Math.min(maxDelayMs, initialDelayMs * 2 ** failuresBefore);
  return full * (1 - jitter * random());
}
