import { isGuardError, traces } from "@countersign/core";
import { workSlices } from "@countersign/core/internal";
import {
  noticeOfEnd,
  type KeyAttempt,
  type OpenTransaction,
  type Performed,
  type Steps,
  type TransactionOwner,
} from "@countersign/idempotency/internal";
import type { WebhookEnvelope } from "../envelope/events.ts";
import { planOf } from "./event-dispatch.ts";
import { claimOf, notAcquired, traceEvent, type NotOwned } from "./event-identity.ts";
import {
  reportFailure,
  type EventAttempt,
  type MalformedAttempt,
  type Reporting,
  type RoutedHandler,
} from "./failed-event.ts";
import type { EventOutcome, WebhookOutcome } from "./webhook-handler-types.ts";

/** PostgreSQL slows beyond 64 subtransactions. */
const mostEvents = 50;

/** How events find their handlers; an empty list is ignored. */
export interface Routes {
  readonly handlersOf: (type: string) => readonly RoutedHandler[];
  readonly onIgnored: (type: string) => void;
}

/** A valid event that has handlers, or a malformed one that is taken without. */
export interface BatchEvent {
  readonly position: number;
  readonly attempt: EventAttempt;
  readonly handlers: readonly RoutedHandler[];
}

/** What became of an event inside its transaction; `again` waits for the next one. */
export type Ended = { readonly outcome: "done" | "accepted" | "again" } | { readonly refused: NotOwned };

export interface EventBatchesInit {
  readonly owner: TransactionOwner<never>;
  /** Begins the key of each event. */
  readonly keyPrefix: string;
  readonly routes: Routes;
  readonly reporting: Reporting;
  /** Ends a malformed event, outside of every transaction. Must not reject. Default: it is one of the batch. */
  readonly endMalformed?: ((attempt: MalformedAttempt) => Promise<EventOutcome>) | undefined;
  /** The keys that the transaction of these events begins with. */
  readonly keysOf: (batch: readonly BatchEvent[]) => readonly KeyAttempt[];
  /** Whether no event is taken behind one whose transaction did not happen: a retry would put that one behind them. */
  readonly keepsOrder: boolean;
  /** What the transaction does; one answer for each event. `begins` is called with the event whose handler runs, and then with none. */
  readonly steps: (
    batch: readonly BatchEvent[],
    open: OpenTransaction<never>,
    begins: (event: BatchEvent | undefined) => void,
  ) => Steps<readonly Ended[]>;
}

/** How transactions ended for their events: the outcomes of those that need no other one, at least of one. */
interface Batch {
  readonly outcomes: Map<BatchEvent, EventOutcome>;
  /** What the events behind these are: none of them may begin in this delivery. */
  readonly rest?: EventOutcome | undefined;
}

/**
 * Takes an envelope's events through transactions, up to fifty a commit. When one event spoils a commit, each gets its own: no event runs
 * with others again, so a delivery runs each handler twice at most, conflicts aside.
 */
export class EventBatches {
  readonly #init: EventBatchesInit;

  constructor(init: EventBatchesInit) {
    this.#init = init;
  }

  async handle(envelope: WebhookEnvelope): Promise<WebhookOutcome> {
    const { deliveries, firsts, outcomeOf } = planOf(envelope);
    const outcomes: (EventOutcome | undefined)[] = [];
    const { keyPrefix, routes, endMalformed } = this.#init;
    const taken: BatchEvent[] = [];
    for (const [position, delivery] of deliveries.entries()) {
      if (firsts[position] !== position) continue;
      const attempt = { claim: claimOf(delivery, keyPrefix), number: 1 };
      if (delivery.invalid !== undefined && endMalformed !== undefined) {
        // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
        while (workSlices.over) await workSlices.next();
        const end = (): Promise<EventOutcome> => endMalformed({ ...attempt, delivery });
        // oxlint-disable-next-line no-await-in-loop -- one malformed event after the other
        outcomes[position] = await traceEvent(delivery, attempt.number, end);
        continue;
      }
      const handlers = delivery.invalid === undefined ? routes.handlersOf(delivery.type) : [];
      if (handlers.length > 0 || delivery.invalid !== undefined) {
        taken.push({ position, attempt: { ...attempt, delivery }, handlers });
        continue;
      }
      routes.onIgnored(delivery.type);
      outcomes[position] = "ignored";
    }
    let events: readonly BatchEvent[] = taken;
    while (events.length > 0) {
      // No promise of a synchronous transaction yields to the event loop.
      if (this.isOverdue) {
        // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
        await workSlices.next();
        continue;
      }
      const batch = distinct(events);
      // oxlint-disable-next-line no-await-in-loop -- one transaction after the other
      const { outcomes: ended, rest } = await this.#transact(batch);
      for (const [event, outcome] of ended) outcomes[event.position] = outcome;
      events = events.filter((event) => !ended.has(event));
      if (rest === undefined) continue;
      for (const { position } of events) outcomes[position] = rest;
      break;
    }
    return outcomeOf(outcomes);
  }

  /** Whether handlers that cannot wait have had their part of this turn, those of other webhooks included. */
  get isOverdue(): boolean {
    return this.#init.owner.isSynchronous && workSlices.over;
  }

  #transact(batch: readonly BatchEvent[]): Promise<Batch> {
    const ended = this.#tryAll(batch);
    if (traces.event.hasSubscribers) {
      for (const event of batch) {
        const { delivery, number } = event.attempt;
        void traceEvent(delivery, number, async () => (await ended).outcomes.get(event) ?? "busy");
      }
    }
    return ended;
  }

  async #tryAll(batch: readonly BatchEvent[]): Promise<Batch> {
    const { owner, reporting, keysOf, keepsOrder, steps } = this.#init;
    const outcomes = new Map<BatchEvent, EventOutcome>();
    let performed: Performed<readonly Ended[]>;
    let running: BatchEvent | undefined;
    const begins = (event: BatchEvent | undefined): void => {
      running = event;
    };
    try {
      performed = await owner.perform({ keys: keysOf(batch) }, (open) => {
        running = undefined;
        return steps(batch, open, begins);
      });
    } catch (error) {
      const outcome = outcomeOfFault(error);
      if (batch.length > 1 && this.#maySpoil(outcome, error)) {
        // Its attempt counts, and it is not run again in this delivery. The others lost what they had written.
        const failed = outcome === "failed" ? running : undefined;
        const others = await this.#tryEach(batch.filter((event) => event !== failed));
        if (failed === undefined) return others;
        return { ...others, outcomes: others.outcomes.set(failed, this.#report(failed, outcome, error)) };
      }
      for (const event of batch) outcomes.set(event, this.#report(event, outcome, error));
      return { outcomes, rest: this.#restAfter(outcome, error) };
    }
    const ends = performed.status === "ended" ? performed.result : undefined;
    for (const [index, event] of batch.entries()) {
      const end = ends?.[index];
      if (end === undefined) outcomes.set(event, "busy");
      else if ("refused" in end) outcomes.set(event, notAcquired(reporting, event.attempt, end.refused));
      else if (end.outcome !== "again") outcomes.set(event, end.outcome);
    }
    return { outcomes, rest: keepsOrder && ends === undefined ? "busy" : undefined };
  }

  /** Each event in a transaction of its own. */
  async #tryEach(batch: readonly BatchEvent[]): Promise<Batch> {
    const outcomes = new Map<BatchEvent, EventOutcome>();
    let rest: EventOutcome | undefined;
    for (const event of batch) {
      if (rest === undefined) {
        // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
        while (this.isOverdue) await workSlices.next();
        // oxlint-disable-next-line no-await-in-loop -- one transaction after the other
        const one = await this.#tryAll([event]);
        for (const [its, outcome] of one.outcomes) outcomes.set(its, outcome);
        ({ rest } = one);
      } else outcomes.set(event, rest);
    }
    return { outcomes, rest };
  }

  /**
   * Whether a single event may be why the transaction of all did not happen. Not after a COMMIT that may have taken effect, nor beside a
   * handler that still has the rows, nor when the store did not say what has committed: the next delivery finds out. Where order counts,
   * only an event that never can be taken is passed over.
   */
  #maySpoil(outcome: EventOutcome, error: unknown): boolean {
    return this.#init.keepsOrder ? error instanceof TypeError : outcome === "failed" || outcome === "busy";
  }

  #restAfter(outcome: EventOutcome, error: unknown): EventOutcome | undefined {
    if (outcome === "unavailable") return "unavailable";
    // Each would wait as long, and keep another connection.
    if (outcome === "timed-out") return "busy";
    return this.#init.keepsOrder && !(error instanceof TypeError) ? "busy" : undefined;
  }

  #report({ attempt }: BatchEvent, outcome: EventOutcome, error: unknown): EventOutcome {
    const { reporting } = this.#init;
    const end = noticeOfEnd(error);
    if (end !== undefined) reporting.keys.alarm({ ...end, key: attempt.claim.key });
    return reportFailure(reporting, attempt, { outcome, error });
  }
}

/** The next transaction's events: no key twice, since two events of one id are one key. */
function distinct(events: readonly BatchEvent[]): readonly BatchEvent[] {
  const seen = new Set<string>();
  const batch: BatchEvent[] = [];
  for (const event of events) {
    const { key } = event.attempt.claim;
    if (batch.length < mostEvents && !seen.has(key)) batch.push(event);
    seen.add(key);
  }
  return batch;
}

const faults: ReadonlyMap<string, EventOutcome> = new Map<string, EventOutcome>([
  ["commit-unknown", "in-doubt"],
  ["draining", "unavailable"],
  ["transaction-conflict", "busy"],
  ["transaction-timed-out", "timed-out"],
  ["transaction-unavailable", "unavailable"],
  ["transaction-unknown", "in-doubt"],
]);

function outcomeOfFault(error: unknown): EventOutcome {
  return (isGuardError(error) ? faults.get(error.code) : undefined) ?? "failed";
}
