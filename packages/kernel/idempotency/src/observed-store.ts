import { tracedStep } from "@countersign/core";
import type {
  Awaitable,
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyDecision,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
} from "./store.ts";

/** What of a store its owner's steps call. */
export type StoreSteps<Tx = never> = Pick<
  IdempotencyStore<Tx>,
  "claim" | "read" | "heartbeat" | "complete" | "completeIn" | "release" | "hold" | "resolve"
>;

/** A store, each of whose steps is one trace on `countersign:store`. Made while somebody subscribes, for the steps of that moment. */
export class ObservedStore implements StoreSteps<unknown> {
  readonly #store: IdempotencyStore<unknown>;
  readonly #timeoutMs: number;

  constructor(store: IdempotencyStore<unknown>, timeoutMs: number) {
    this.#store = store;
    this.#timeoutMs = timeoutMs;
  }

  claim(key: string, claim: IdempotencyClaim): Awaitable<IdempotencyClaimResult> {
    return this.#trace("claim", (store) => store.claim(key, claim));
  }

  read(key: string): Awaitable<IdempotencyRecord | undefined> {
    return this.#trace("read", (store) => store.read(key));
  }

  heartbeat(key: string, token: string, leaseMs: number): Awaitable<IdempotencyOwnership> {
    return this.#trace("heartbeat", (store) => store.heartbeat(key, token, leaseMs));
  }

  complete(key: string, token: string): Awaitable<IdempotencyOwnership> {
    return this.#trace("complete", (store) => store.complete(key, token));
  }

  completeIn(tx: unknown, key: string, token: string): Awaitable<IdempotencyOwnership> {
    return this.#trace("completeIn", (store) => store.completeIn?.(tx, key, token) ?? "lost");
  }

  release(key: string, token: string): Awaitable<IdempotencyOwnership> {
    return this.#trace("release", (store) => store.release(key, token));
  }

  hold(key: string, token: string, reason: string): Awaitable<IdempotencyOwnership> {
    return this.#trace("hold", (store) => store.hold(key, token, reason));
  }

  resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Awaitable<"ok" | "not-held"> {
    return this.#trace("resolve", (store) => store.resolve(key, outcome, decision));
  }

  #trace<T>(step: string, call: (store: IdempotencyStore<unknown>) => Awaitable<T>): Awaitable<T> {
    return tracedStep({ engine: this.#store.engine, step, timeoutMs: this.#timeoutMs }, () =>
      call(this.#store),
    );
  }
}
