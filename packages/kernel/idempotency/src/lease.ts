import { channels, type PublishedEvents } from "@countersign/core";
import { escapeForLog } from "@countersign/core/internal";
import type { AttemptStore } from "./attempt-store.ts";
import { alarm } from "./notices.ts";
import { idempotencyLost } from "./refusals.ts";

/**
 * Renews a lease about every third of its length. Aborts the signal when another attempt has the key, or may have it.
 * All times are this process's monotonic clock, used only for its own pace.
 */
export class Lease {
  readonly #store: AttemptStore;
  readonly #claimedAtMs: number;
  readonly #onLost: (() => void) | undefined;
  #renewedAtMs: number;
  #beating = false;
  #phase: "running" | "leaving" | "ended" = "running";
  #lost = false;
  #abortReason: Error | undefined;
  #controller: AbortController | undefined;

  /** `claimedAtMs` precedes the claim's sending: the store's lease ends no earlier than this one. */
  constructor(store: AttemptStore, claimedAtMs: number, onLost?: () => void) {
    this.#store = store;
    this.#claimedAtMs = claimedAtMs;
    this.#onLost = onLost;
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

  get claimedAtMs(): number {
    return this.#claimedAtMs;
  }

  get lost(): boolean {
    return this.#lost;
  }

  get ended(): boolean {
    return this.#phase === "ended";
  }

  /** Aborts the signal; the first reason stays. */
  abort(reason: Error): void {
    this.#abortReason ??= reason;
    this.#controller?.abort(this.#abortReason);
  }

  /** Marks the handler's end: a later `lost` may be the echo of our own complete or release. */
  leave(): void {
    if (this.#phase === "running") this.#phase = "leaving";
  }

  end(): void {
    this.#phase = "ended";
  }

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
      else this.#takenAway();
      this.#beating = false;
    } catch (error) {
      this.#missed(error);
    }
  }

  /** The store says: another attempt has the key, or an operator has decided. */
  #takenAway(): void {
    if (this.#phase === "running") {
      this.#lose("lease-lost", "belongs to another attempt, or was decided about, while its handler runs");
    }
    this.end();
  }

  // The heartbeat outlives the lease: the store may be back in time, or no other attempt may come.
  #missed(error: unknown): void {
    this.#beating = false;
    if (this.#phase !== "running") return;
    if (performance.now() < this.#renewedAtMs + this.#store.options.leaseMs) return;
    this.#lose("lease-expired", "could not be renewed in time while its handler runs", error);
  }

  #lose(code: string, message: string, error?: unknown): void {
    if (this.#lost) return;
    this.#lost = true;
    const { key, req } = this.#store.attempt;
    const { factory, retryAfterSeconds } = this.#store.options;
    if (channels.leaseLost.hasSubscribers) {
      const event: PublishedEvents["leaseLost"] = { guard: factory, key: escapeForLog(key, 256), code, req };
      channels.leaseLost.publish(event);
    }
    alarm(factory, { code, key, message, req, error });
    this.abort(idempotencyLost(retryAfterSeconds));
    this.#onLost?.();
  }
}

/** One timer for all leases of an owner: a short run costs no timer of its own. */
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

  // The timer outlives the last lease by one tick: a quiet server does not start and stop it at every request.
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
