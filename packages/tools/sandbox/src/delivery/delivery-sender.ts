import type { Sql } from "../sql.ts";
import type { DeliveryState } from "./delivery.ts";
import type { ResolvedDeliveryOptions } from "./options.ts";
import type { QueuedDelivery, QueueTables } from "./queue-tables.ts";
import { exchangeWebhook, type WebhookAnswer, type WebhookOptions } from "./send-webhook.ts";
import type { TamperedWebhookPart } from "./webhook-request.ts";

export interface DeliveryParts {
  readonly sql: Sql;
  readonly tables: QueueTables;
  readonly options: ResolvedDeliveryOptions;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  readonly ca: string | Buffer | undefined;
}

export class DeliverySender {
  readonly #parts: DeliveryParts;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
  }

  /** Rejects only when the database fails. What `signal` cuts off leaves no trace: the delivery stays due. */
  async send(due: QueuedDelivery, signal: AbortSignal): Promise<void> {
    const { sql, tables, options, clock } = this.#parts;
    const at = Math.floor(clock());
    const dropAnswer = due.rounds === 0 && options.random() < options.dropConnection;
    const request = { ...this.#request(due), dropAnswer, signal };
    const requests = options.twiceAtOnce ? [request, request] : [request];
    const sent = await Promise.all(requests.map((one) => exchangeWebhook(one)));
    const delivered = sent.some(({ answer }) => isDelivery(answer));
    if (signal.aborted && !delivered) return;
    const [state, dueMs] = this.#progress(due, delivered);
    sql.atomically(() => {
      for (const { answer, exchange } of sent) tables.addAttempt(due.id, { at, ...answer }, exchange);
      tables.progress(due.id, state, dueMs);
    });
  }

  /** Sends a webhook once with one part spoilt, and records the answer alone. */
  async spoil(delivery: QueuedDelivery, spoilt: TamperedWebhookPart): Promise<void> {
    const { sql, tables, clock } = this.#parts;
    const at = Math.floor(clock());
    const { answer, exchange } = await exchangeWebhook({ ...this.#request(delivery), tamper: spoilt });
    sql.atomically(() => tables.addAttempt(delivery.id, { at, ...answer, spoilt }, exchange));
  }

  // Read anew for each attempt: the same bytes every time.
  #request({ endpointId, webhookId }: QueuedDelivery): WebhookOptions {
    const { tables, options, ca } = this.#parts;
    const { timeoutMs } = options;
    return { ...tables.endpoint(endpointId), body: tables.body(webhookId), ca, timeoutMs };
  }

  #progress(due: QueuedDelivery, delivered: boolean): [state: DeliveryState, dueMs?: number] {
    const { options, clock } = this.#parts;
    const nowMs = clock();
    // What was sent once more is not repeated, whatever came of it.
    if (due.state === "delivered") return ["delivered"];
    if (delivered) {
      const again = options.random() < options.duplicate;
      return again ? ["delivered", Math.ceil(nowMs + options.initialDelayMs)] : ["delivered"];
    }
    const dueMs = Math.ceil(nowMs + backoffMs(due.rounds, options));
    return dueMs > due.expiresMs ? ["failed"] : ["pending", dueMs];
  }
}

function isDelivery({ status = 0 }: WebhookAnswer): boolean {
  return status >= 200 && status <= 299;
}

const jitter = 0.25;

/** The delay after so many failures: doubled up to `maxDelayMs`, less up to a quarter at random, so that delays still grow. */
export function backoffMs(
  failures: number,
  options: Pick<ResolvedDeliveryOptions, "initialDelayMs" | "maxDelayMs" | "random">,
): number {
  const full = Math.min(options.maxDelayMs, options.initialDelayMs * 2 ** failures);
  return full * (1 - jitter * options.random());
}
