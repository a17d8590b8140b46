import { leaseLostChannel, type LeaseLostEvent } from "@countersign/core";
import { escapeForLog } from "@countersign/core/door";
import type { AttemptStore } from "./attempt-store.ts";
import { alarm } from "./notices.ts";
import { idempotencyLost } from "./refusals.ts";

/**
 * The owner's side of a lease: renews it about every third of its length while the handler runs, and aborts the signal when
 * another attempt has the key, or may have it. All times are this process's monotonic clock, used only for its own pace.
 */
export class Lease {
  readonly #store: AttemptStore;
  readonly #claimedAtMs: number;
  #renewedAtMs: number;
  #beating = false;
  #phase: "running" | "leaving" | "ended" = "running";
  #leaving = false;
  #lost = false;
  #isCommitted: (() => Promise<boolean>) | undefined;
  #abortReason: Error | undefined;
  #controller: AbortController | undefined;

  /** `claimedAtMs` is taken before the claim was sent: the store's lease ends no earlier than this one. */
  constructor(store: AttemptStore, claimedAtMs: number) {
    this.#store = store;
    this.#claimedAtMs = claimedAtMs;
    this.#renewedAtMs = claimedAtMs;
  }

  /** Made on first use: most handlers never ask. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** By the monotonic clock of this process. */
  get claimedAtMs(): number {
    return this.#claimedAtMs;
  }

  get lost(): boolean {
    return this.#lost;
  }

  /** Whether the key is being settled, by its owner or by an answer in its place. */
  get leaving(): boolean {
    return this.#leaving;
  }

  get ended(): boolean {
    return this.#phase === "ended";
  }

  /** Aborts the signal, for the first reason that comes. */
  abort(reason: Error): void {
    this.#abortReason ??= reason;
    this.#controller?.abort(this.#abortReason);
  }

  /** The handler has ended: a `lost` from now on may be the echo of our own complete or release. */
  leave(): void {
    this.#leaving = true;
    if (this.#phase === "running") this.#phase = "leaving";
  }

  /** The handler's own transaction completes the key: a `lost` from now on may be the echo of its commit, which this tells. */
  committing(isCommitted: () => Promise<boolean>): void {
    this.#isCommitted = isCommitted;
  }

  /** No heartbeat from here on. */
  end(): void {
    this.#phase = "ended";
  }

  /** Renews the lease when it is time to. */
  beat(nowMs: number): void {
    const { leaseMs, handlerTimeoutMs } = this.#store.options;
    if (this.#phase === "running" && nowMs - this.#claimedAtMs >= handlerTimeoutMs) {
      this.#lose("handler-timeout", `has a handler that has not ended within ${handlerTimeoutMs} ms`);
      this.end();
      return;
    }
    if (this.#beating || this.ended || nowMs - this.#renewedAtMs < leaseMs / 4) return;
    void this.#renew(nowMs);
  }

  /** Never rejects. */
  async #renew(sentAtMs: number): Promise<void> {
    this.#beating = true;
    try {
      if ((await this.#store.heartbeat()) === "ok") this.#renewedAtMs = sentAtMs;
      else await this.#lostUnlessCommitted();
      this.#beating = false;
    } catch (error) {
      this.#missed(error);
    }
  }

  async #lostUnlessCommitted(): Promise<void> {
    const committed = this.#phase === "running" && ((await this.#isCommitted?.()) ?? false);
    if (!committed) this.takenAway();
    this.end();
  }

  /** The store says that the key is another attempt's, or was decided about by an operator. */
  takenAway(): void {
    if (this.#phase === "running")
      this.#lose("lease-lost", "belongs to another attempt, or was decided about, while its handler runs");
  }

  // The store may be back in time, or no other attempt may come: the heartbeat goes on after the end of the lease. While the handler's own
  // transaction locks the key, no heartbeat gets through either.
  #missed(error: unknown): void {
    this.#beating = false;
    if (this.#phase !== "running" || this.#isCommitted !== undefined) return;
    if (performance.now() < this.#renewedAtMs + this.#store.options.leaseMs) return;
    this.#lose("lease-expired", "could not be renewed in time while its handler runs", error);
  }

  #lose(code: string, message: string, error?: unknown): void {
    if (this.#lost) return;
    this.#lost = true;
    const { key, req } = this.#store.attempt;
    const { factory, retryAfterSeconds } = this.#store.options;
    if (leaseLostChannel.hasSubscribers) {
      const event: LeaseLostEvent = { guard: factory, key: escapeForLog(key, 256), code, req };
      leaseLostChannel.publish(event);
    }
    alarm(factory, { code, key, message, req, error });
    this.abort(idempotencyLost(retryAfterSeconds));
  }
}

/** One timer for all leases of an owner: a run that ends soon costs no timer of its own. */
export class Heartbeats {
  readonly #leases = new Set<Lease>();
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(leaseMs: number) {
    this.#everyMs = Math.floor(leaseMs / 6);
  }

  add(lease: Lease): void {
    this.#leases.add(lease);
    this.#timer ??= setInterval(() => this.#tick(), this.#everyMs).unref();
  }

  remove(lease: Lease): void {
    lease.end();
    this.#leases.delete(lease);
  }

  // The timer outlives the last lease by one tick, so that a quiet server does not start and stop it at every request.
  #tick(): void {
    if (this.#leases.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const nowMs = performance.now();
    for (const lease of this.#leases) {
      lease.beat(nowMs);
      if (lease.ended) this.#leases.delete(lease);
    }
  }
}
