import { masking } from "../../loopback/index.ts";
import type { DeliveryAttempt, DeliveryFilter, DeliveryState, StoredDelivery } from "./delivery.ts";
import { shownAttempts } from "./delivery-queue.ts";
import { backoffMs, sendSpoilt, type DeliveryParts } from "./delivery-sender.ts";
import { shownAnswerLength, shownHeaders, type WebhookExchange } from "./send-webhook.ts";
import { buildWebhookRequest, type TamperedWebhookPart } from "./webhook-request.ts";

/** Times are in milliseconds since 1970. */
export type DeliveryDetail = ReturnType<typeof detailOf>;

interface DeliveryControlInit extends DeliveryParts {
  /** What `mask` takes out beside the endpoints' credentials. */
  readonly secrets: readonly string[];
  readonly changed: (id: number) => void;
}

const shownBodyBytes = 65_536;
const shownSteps = 5;

/** Acts on single deliveries for a person. No answer holds a password or a secret. */
export type DeliveryControl = ReturnType<typeof createDeliveryControl>;

export function createDeliveryControl(init: DeliveryControlInit) {
  const { queue, clock, secrets, changed } = init;
  /** Copies a value without endpoints' passwords and secrets, and without private keys. */
  const mask = <T>(value: T): T => {
    const credentials = queue.credentials();
    return masking.of({ credentials, texts: [...secrets, ...credentials.map(({ secret }) => secret)] })(
      value,
    );
  };
  const changing = (by: (stored: StoredDelivery) => Partial<StoredDelivery> | undefined) => (id: number) => {
    const stored = queue.delivery(id);
    const change = stored && by(stored);
    if (change === undefined) return false;
    queue.change(id, change);
    changed(id);
    return true;
  };
  return {
    mask,
    /** Of those that a filter finds, default of all. Paused ones are pending. */
    counts({ eventId, search }: DeliveryFilter = {}): Readonly<Record<DeliveryState, number>> {
      const counts = { pending: 0, delivered: 0, failed: 0 };
      for (const { state } of queue.found({ eventId, search })) counts[state] += 1;
      return counts;
    },
    detail(id: number): DeliveryDetail | undefined {
      const stored = queue.delivery(id);
      return stored && cut(mask(detailOf(stored, init)));
    },
    /** Sends nothing more until it is continued or sent again. False unless it is pending and goes on. */
    pause: changing(({ state, stop, dueMs }) =>
      state === "pending" && stop === undefined
        ? { stop: { kind: "paused", dueMs }, dueMs: undefined }
        : undefined,
    ),
    /** What became due meanwhile is sent at once. False unless it is paused. */
    continue: changing(({ stop }) => {
      const nowMs = Math.floor(clock());
      return stop?.kind === "paused"
        ? { stop: undefined, dueMs: Math.max(stop.dueMs ?? nowMs, nowMs) }
        : undefined;
    }),
    /** Gives a pending delivery up. False for any other. */
    drop: changing(({ state }) =>
      state === "pending" ? { state: "failed", stop: { kind: "dropped" }, dueMs: undefined } : undefined,
    ),
    /** Sends it once, now, with one part spoilt; its state and schedule stay. False for an unknown number. */
    async spoil(id: number, part: TamperedWebhookPart): Promise<boolean> {
      const stored = queue.delivery(id);
      if (stored === undefined) return false;
      await sendSpoilt(init, stored, part);
      changed(id);
      return true;
    },
  };
}

function detailOf(stored: StoredDelivery, { queue, options, forwardedFor }: DeliveryControlInit) {
  const { endpointId, webhookId, expiresMs, attempts } = stored;
  const body = queue.body(webhookId);
  const { method, target, headers } = buildWebhookRequest({
    ...queue.endpoint(endpointId),
    body,
    forwardedFor,
  });
  return {
    delivery: queue.shown(stored),
    request: {
      method,
      target,
      // As of an attempt now, without the password of Authorization.
      headers: shownHeaders(headers),
      body: body.subarray(0, shownBodyBytes).toString("utf8"),
      bodyBytes: body.length,
    },
    // `later` is when further attempts follow at the latest, each after a failure.
    schedule: { givesUpAt: expiresMs, later: stepsAfter(stored, options) },
    attempts: attempts
      .slice(-shownAttempts)
      .map(({ exchange, ...attempt }): DeliveryAttempt & Partial<WebhookExchange> =>
        Object.assign(attempt, exchange),
      ),
  };
}

// After the masking: half a secret at the end of a text would not be found.
function cut(detail: DeliveryDetail): DeliveryDetail {
  const attempts = detail.attempts.map(({ answerBody, ...attempt }) => ({
    ...attempt,
    answerBody: answerBody?.slice(0, shownAnswerLength),
  }));
  return { ...detail, attempts };
}

function stepsAfter(
  { dueMs, state, rounds, expiresMs }: StoredDelivery,
  options: DeliveryParts["options"],
): readonly number[] {
  if (dueMs === undefined || state !== "pending") return [];
  const steps: number[] = [];
  let at = dueMs;
  for (let round = rounds; steps.length < shownSteps; round += 1) {
    at += Math.ceil(backoffMs(round, { ...options, random: () => 0 }));
    if (at > expiresMs) break;
    steps.push(at);
  }
  return steps;
}
