import { randomInt, randomUUID } from "node:crypto";

/** One event as the service puts it on the wire. */
export interface StreamEvent {
  readonly event_id: string;
  readonly timestamp: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What the service itself holds after its last event. */
export interface ServiceState {
  readonly buyers: ReadonlyMap<string, string>;
  readonly sellers: ReadonlyMap<string, string>;
  readonly payment_requests: ReadonlyMap<string, { readonly status: string; readonly reminders: number }>;
}

/** Webhooks in the order in which the service formed them, and its state at the end. */
export interface WebhookStream {
  readonly webhooks: readonly Buffer[];
  readonly eventIds: ReadonlySet<string>;
  readonly state: ServiceState;
}

const statuses = ["PENDING", "ACTIVE", "INACTIVE", "REJECTED", "SUSPENDED"] as const;

/** A service at work: `count` webhooks of 1 to `largest` events about a few hundred parties and payment requests. */
export function webhookStream(count: number, largest: number): WebhookStream {
  const service = new PractisingService();
  const eventIds = new Set<string>();
  const webhooks = Array.from({ length: count }, (_, number) => {
    const events = Array.from({ length: randomInt(1, largest + 1) }, () => service.nextEvent());
    for (const { event_id } of events) eventIds.add(event_id);
    return Buffer.from(
      JSON.stringify({ webhook_id: `wh-${number}`, timestamp: service.timestamp(), events }),
    );
  });
  return { webhooks, eventIds, state: service.state };
}

class PractisingService {
  readonly #parties = { buyer: new Map<string, string>(), seller: new Map<string, string>() };
  readonly #requests = new Map<string, { status: string; reminders: number }>();
  #now = 1_704_164_645n * 1_000_000_000n;

  get state(): ServiceState {
    return {
      buyers: this.#parties.buyer,
      sellers: this.#parties.seller,
      payment_requests: this.#requests,
    };
  }

  /** Times grow by as little as one nanosecond, and end in zeros now and then. */
  timestamp(): string {
    this.#now += BigInt(randomInt(1, 2_000));
    const fraction = String(this.#now % 1_000_000_000n).padStart(9, "0");
    const seconds = new Date(Number(this.#now / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
    // As many digits as are needed: string comparison of such timestamps is wrong.
    return `${seconds}.${fraction.replace(/0+$/, "") || "0"}Z`;
  }

  nextEvent(): StreamEvent {
    const choice = randomInt(10);
    if (choice < 4) return this.#statusChanged("buyer");
    if (choice < 7) return this.#statusChanged("seller");
    return this.#paymentRequest(choice === 7);
  }

  #statusChanged(party: "buyer" | "seller"): StreamEvent {
    const id = `${party}-${randomInt(200)}`;
    const old = this.#parties[party].get(id) ?? "PENDING";
    const next = statuses[randomInt(statuses.length)] ?? "PENDING";
    this.#parties[party].set(id, next);
    return this.#event(`${party}.status_changed`, {
      [`${party}_id`]: id,
      old_status: old,
      new_status: next,
    });
  }

  #paymentRequest(repay: boolean): StreamEvent {
    const id = `request-${randomInt(5_000)}`;
    const { status, reminders } = this.#requests.get(id) ?? { status: "PENDING_REPAYMENT", reminders: 0 };
    if (repay || status === "CLOSED") {
      this.#requests.set(id, { status: "CLOSED", reminders });
      return this.#event("payment_request.repayment.repaid", { payment_request_id: id });
    }
    this.#requests.set(id, { status, reminders: reminders + 1 });
    const days = randomInt(-5, 6);
    return this.#event("payment_request.repayment.reminder", {
      payment_request_id: id,
      due_date: "2024-01-31",
      days_from_due_date: randomInt(2) === 0 ? days : String(days),
    });
  }

  #event(type: string, data: Readonly<Record<string, unknown>>): StreamEvent {
    return { event_id: randomUUID(), timestamp: this.timestamp(), type, data };
  }
}
