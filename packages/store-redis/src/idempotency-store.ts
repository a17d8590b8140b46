import { randomUUID } from "node:crypto";
import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyDecision,
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyOwnership,
  IdempotencyRecord,
  IdempotencyStore,
} from "@countersign/idempotency-guard";
import {
  assertDecision,
  assertDuration,
  assertOpen,
  assertOutcome,
  assertText,
  encodeText,
} from "@countersign/store-core";
import { ping, runScript } from "./commands.ts";
import { listKeys } from "./listing.ts";
import { type ResolvedOptions, dayMs, longestMs } from "./options.ts";
import { claimResult, oneOf, ownership, record } from "./replies.ts";
import {
  type RedisScript,
  claimScript,
  completeScript,
  heartbeatScript,
  holdScript,
  readScript,
  releaseScript,
  resolveScript,
} from "./scripts.ts";
import type { ServerCheck } from "./server-check.ts";

/** The idempotency store of the guard on Redis: each step is one script on one key. */
export interface RedisIdempotencyStore extends IdempotencyStore {
  readonly retentionMs: number;
  claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult>;
  read(key: string): Promise<IdempotencyRecord | undefined>;
  heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership>;
  complete(key: string, token: string): Promise<IdempotencyOwnership>;
  release(key: string, token: string): Promise<IdempotencyOwnership>;
  hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership>;
  resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Promise<"ok" | "not-held">;
  /**
   * By SCAN, so it walks over all keys of the database; on a cluster, over those of the node that `sendCommand` reaches without a
   * key.
   */
  list(query: IdempotencyListQuery): Promise<IdempotencyListing>;
  /** Redis removes what has expired by itself: 0, once the server has answered. */
  prune(): Promise<number>;
  /** The client stays open, it is the caller's. A later call throws. */
  close(): void;
}

const name = "redis idempotency store";

// A released key is remembered for its fence, longer than a claim can be under way that has not seen the release.
const fenceMemoryMs = dayMs;

export class IdempotencyKeys implements RedisIdempotencyStore {
  readonly retentionMs: number;
  readonly #options: ResolvedOptions;
  readonly #server: ServerCheck;
  #closed = false;

  constructor(options: ResolvedOptions, server: ServerCheck) {
    this.retentionMs = options.retentionMs;
    this.#options = options;
    this.#server = server;
  }

  async claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult> {
    const { token, fingerprint, leaseMs, recovery } = claim;
    this.#assertCall(key, token);
    assertText(name, "fingerprint", fingerprint);
    assertDuration(name, "leaseMs", leaseMs);
    const args = [encodeText(token), encodeText(fingerprint), lease(leaseMs), recovery];
    return claimResult(await this.#run(claimScript, key, args));
  }

  async read(key: string): Promise<IdempotencyRecord | undefined> {
    this.#assertCall(key);
    return record(await this.#run(readScript, key, []));
  }

  async heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    assertDuration(name, "leaseMs", leaseMs);
    return ownership(await this.#run(heartbeatScript, key, [encodeText(token), lease(leaseMs)]));
  }

  async complete(key: string, token: string): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    return ownership(await this.#run(completeScript, key, [encodeText(token), String(this.retentionMs)]));
  }

  async release(key: string, token: string): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    return ownership(await this.#run(releaseScript, key, [encodeText(token), String(fenceMemoryMs)]));
  }

  async hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership> {
    this.#assertCall(key, token);
    assertText(name, "reason", reason);
    return ownership(await this.#run(holdScript, key, [encodeText(token), encodeText(reason)]));
  }

  async resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Promise<"ok" | "not-held"> {
    this.#assertCall(key);
    assertOutcome(name, outcome);
    assertDecision(name, decision);
    const [state, rememberedMs] = outcome === "done" ? ["done", this.retentionMs] : ["free", fenceMemoryMs];
    const args = [String(decision.fence), randomUUID(), state, String(rememberedMs)];
    return oneOf(await this.#run(resolveScript, key, args), ["ok", "not-held"]);
  }

  async list(query: IdempotencyListQuery): Promise<IdempotencyListing> {
    assertOpen(name, this.#closed);
    return listKeys({ name, options: this.#options, read: (key) => this.read(key) }, query);
  }

  async prune(): Promise<number> {
    assertOpen(name, this.#closed);
    await ping(this.#options);
    return 0;
  }

  close(): void {
    this.#closed = true;
  }

  async #run(script: RedisScript, key: string, args: readonly string[]): Promise<unknown> {
    const redisKey = `${this.#options.prefix}:key:${encodeText(key)}`;
    const reply = await runScript(this.#options, script, redisKey, [this.#options.now(), ...args]);
    this.#server.begin();
    return reply;
  }

  #assertCall(key: string, token?: string): void {
    assertOpen(name, this.#closed);
    assertText(name, "key", key);
    if (token !== undefined) assertText(name, "token", token);
  }
}

function lease(leaseMs: number): string {
  return String(Math.min(leaseMs, longestMs));
}
