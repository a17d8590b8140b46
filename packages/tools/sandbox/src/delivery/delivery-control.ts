import { maskerOf } from "@countersign/inspector/loopback";
import { oneDelivery, type Delivery, type DeliveryAttempt, type DeliveryState } from "./delivery.ts";
import { backoffMs, type DeliveryParts, type DeliverySender } from "./delivery-sender.ts";
import type { QueuedDelivery } from "./queue-tables.ts";
import { shownAnswerLength, shownHeaders, type WebhookExchange } from "./send-webhook.ts";
import { buildWebhookRequest, type TamperedWebhookPart } from "./webhook-request.ts";

/** Times are in milliseconds since 1970. */
export type DeliveryDetail = ReturnType<typeof detailOf>;

export interface DeliveryControlInit extends DeliveryParts {
  readonly sender: DeliverySender;
  /** What `mask` takes out beside the endpoints' credentials. */
  readonly secrets: readonly string[];
  readonly changed: (id: number) => void;
}

type Masker = ReturnType<typeof maskerOf>;

const shownBodyBytes = 65_536;
const shownAttempts = 50;
const shownSteps = 5;

/** Acts on single deliveries for a person. No answer holds a password or a secret. */
export class DeliveryControl {
  readonly #init: DeliveryControlInit;

  constructor(init: DeliveryControlInit) {
    this.#init = init;
  }

  /** Paused ones are pending. */
  counts(): Readonly<Record<DeliveryState, number>> {
    const rows = this.#init.sql.rows<{ readonly state: DeliveryState; readonly count: number }>(
      "SELECT state, count(*) AS count FROM webhook_deliveries GROUP BY state",
    );
    const counts = { pending: 0, delivered: 0, failed: 0 };
    for (const { state, count } of rows) counts[state] = count;
    return counts;
  }

  /** Copies a value without endpoints' passwords and secrets, and without private keys. */
  readonly mask: Masker = (value) => {
    const { tables, secrets } = this.#init;
    const credentials = tables.credentials();
    return maskerOf({ credentials, texts: [...secrets, ...credentials.map(({ secret }) => secret)] })(value);
  };

  detail(id: number): DeliveryDetail | undefined {
    const queued = this.#init.tables.delivery(id);
    return queued === undefined ? undefined : cut(this.mask(detailOf(queued, this.#init)));
  }

  /** Sends nothing more until it is continued or sent again. False unless it is pending and goes on. */
  pause(id: number): boolean {
    const { tables } = this.#init;
    return this.#change(id, ({ state }) => {
      if (state !== "pending" || tables.stopOf(id) !== undefined) return false;
      tables.pause(id);
      return true;
    });
  }

  /** What became due meanwhile is sent at once. False unless it is paused. */
  continue(id: number): boolean {
    const { tables, clock } = this.#init;
    return this.#change(id, () => {
      if (tables.stopOf(id) !== "paused") return false;
      tables.continue(id, Math.floor(clock()));
      return true;
    });
  }

  /** Gives a pending delivery up. False for any other. */
  drop(id: number): boolean {
    return this.#change(id, ({ state }) => {
      if (state !== "pending") return false;
      this.#init.tables.drop(id);
      return true;
    });
  }

  /** Sends it once, now, with one part spoilt; its state and schedule stay. False for an unknown number. */
  async spoil(id: number, part: TamperedWebhookPart): Promise<boolean> {
    const { tables, sender, changed } = this.#init;
    const queued = tables.delivery(id);
    if (queued === undefined) return false;
    await sender.spoil(queued, part);
    changed(id);
    return true;
  }

  #change(id: number, work: (queued: QueuedDelivery) => boolean): boolean {
    const { sql, tables, changed } = this.#init;
    const done = sql.atomically(() => {
      const queued = tables.delivery(id);
      return queued !== undefined && work(queued);
    });
    if (done) changed(id);
    return done;
  }
}

function detailOf(queued: QueuedDelivery, { sql, tables, options }: DeliveryControlInit) {
  const { id, endpointId, webhookId, expiresMs } = queued;
  const delivery = oneDelivery(sql, id);
  const body = tables.body(webhookId);
  const { method, target, headers } = buildWebhookRequest({ ...tables.endpoint(endpointId), body });
  const exchanges = tables.exchanges(id, shownAttempts);
  const newest = delivery.attempts.slice(-shownAttempts);
  return {
    delivery,
    request: {
      method,
      target,
      // As of an attempt now, without the password of Authorization.
      headers: shownHeaders(headers),
      body: body.subarray(0, shownBodyBytes).toString("utf8"),
      bodyBytes: body.length,
    },
    // `later` is when further attempts follow at the latest, each after a failure.
    schedule: { givesUpAt: expiresMs, later: stepsAfter(delivery, queued, options) },
    attempts: newest.map((attempt, index): DeliveryAttempt & Partial<WebhookExchange> =>
      Object.assign({}, attempt, exchanges[index]),
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
  { nextAttemptAt, state }: Delivery,
  { rounds, expiresMs }: QueuedDelivery,
  options: DeliveryParts["options"],
): readonly number[] {
  if (nextAttemptAt === undefined || state !== "pending") return [];
  const steps: number[] = [];
  let at = nextAttemptAt;
  for (let round = rounds; steps.length < shownSteps; round += 1) {
    at += Math.ceil(backoffMs(round, { ...options, random: () => 0 }));
    if (at > expiresMs) break;
    steps.push(at);
  }
  return steps;
}
