import type { DocumentStore } from "../documents.ts";
import type { StoredDelivery } from "./delivery.ts";
import type { DeliveryQueue } from "./delivery-queue.ts";
import type { ResolvedDeliveryOptions } from "./options.ts";
import { exchangeWebhook, type WebhookAnswer, type WebhookOptions } from "./send-webhook.ts";
import type { TamperedWebhookPart } from "./webhook-request.ts";

export interface DeliveryParts {
  readonly store: DocumentStore;
  readonly queue: DeliveryQueue;
  readonly options: ResolvedDeliveryOptions;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  readonly ca: string | Buffer | undefined;
  readonly forwardedFor: string | undefined;
}

/** Rejects only when the database fails. What `signal` cuts off leaves no trace: the delivery stays due. */
export async function sendDue(parts: DeliveryParts, due: StoredDelivery, signal: AbortSignal): Promise<void> {
  const { store, queue, options, clock } = parts;
  const at = Math.floor(clock());
  const dropAnswer = due.rounds === 0 && options.random() < options.dropConnection;
  const request = { ...requestOf(parts, due), dropAnswer, signal };
  const requests = options.twiceAtOnce ? [request, request] : [request];
  const sent = await Promise.all(requests.map((one) => exchangeWebhook(one)));
  const delivered = sent.some(({ answer }) => isDelivery(answer));
  if (signal.aborted && !delivered) return;
  const progress = progressOf(parts, due, delivered);
  store.atomically(() => {
    for (const { answer, exchange } of sent) queue.addAttempt(due.id, { at, ...answer }, exchange);
    queue.change(due.id, stoppedOr(progress, queue.delivery(due.id)?.stop));
  });
}

/** Sends a webhook once with one part spoilt, and records the answer alone. */
export async function sendSpoilt(
  parts: DeliveryParts,
  delivery: StoredDelivery,
  spoilt: TamperedWebhookPart,
): Promise<void> {
  const at = Math.floor(parts.clock());
  const { answer, exchange } = await exchangeWebhook({ ...requestOf(parts, delivery), tamper: spoilt });
  parts.store.atomically(() => parts.queue.addAttempt(delivery.id, { at, ...answer, spoilt }, exchange));
}

// Read anew for each attempt: the same bytes every time.
function requestOf(
  { queue, options, ca, forwardedFor }: DeliveryParts,
  { endpointId, webhookId }: StoredDelivery,
): WebhookOptions {
  const body = queue.body(webhookId);
  return { ...queue.endpoint(endpointId), body, ca, forwardedFor, timeoutMs: options.timeoutMs };
}

type Progress = Pick<StoredDelivery, "state" | "dueMs" | "rounds">;

function progressOf({ options, clock }: DeliveryParts, due: StoredDelivery, delivered: boolean): Progress {
  const nowMs = clock();
  // What was sent once more is not repeated, whatever came of it.
  const rounds = due.rounds + 1;
  const ended = { state: "delivered", dueMs: undefined, rounds } as const;
  if (due.state === "delivered") return ended;
  if (delivered) {
    const again = options.random() < options.duplicate;
    return again ? { ...ended, dueMs: Math.ceil(nowMs + options.initialDelayMs) } : ended;
  }
  const dueMs = Math.ceil(nowMs + backoffMs(due.rounds, options));
  return dueMs > due.expiresMs ? { ...ended, state: "failed" } : { state: "pending", dueMs, rounds };
}

/** What was stopped while it was under way stays so, unless it has arrived. */
function stoppedOr(progress: Progress, stop: StoredDelivery["stop"]): Partial<StoredDelivery> {
  if (stop === undefined || progress.state === "delivered") return { ...progress, stop: undefined };
  return stop.kind === "dropped"
    ? { ...progress, state: "failed", dueMs: undefined }
    : { ...progress, dueMs: undefined, stop: { ...stop, dueMs: progress.dueMs } };
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
