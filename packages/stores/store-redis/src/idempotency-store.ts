import { randomUUID } from "node:crypto";
import type {
  IdempotencyClaim,
  IdempotencyClaimResult,
  IdempotencyDecision,
  IdempotencyListing,
  IdempotencyListQuery,
  IdempotencyOwnership,
  IdempotencyRecord,
  ReleasedKey,
} from "@countersign/idempotency";
import { type RemoteIdempotencyStore, encodeText, fenceMemoryMs } from "@countersign/idempotency/store";
import { listKeys } from "./listing.ts";
import { type ResolvedRedisOptions, longestMs } from "./options.ts";
import { claimResult, oneOf, ownership, record, releasedKey } from "./replies.ts";
import { ScriptedStore } from "./scripted-store.ts";
import {
  type RedisScript,
  claimScript,
  completeScript,
  heartbeatScript,
  holdScript,
  readScript,
  releaseScript,
  reopenScript,
  resolveScript,
} from "./scripts.ts";
import type { ServerCheck } from "./server-check.ts";

/** The idempotency store on Redis. Each step is one script on one key. */
export interface RedisIdempotencyStore extends RemoteIdempotencyStore {
  /** Scans the whole database; on a cluster, the node that `sendCommand` reaches without a key. */
  list(query: IdempotencyListQuery): Promise<IdempotencyListing>;
  /** Gives 0 once the server has answered: Redis removes by itself what has expired. */
  prune(): Promise<number>;
}

const name = "redis idempotency store";

export class IdempotencyKeys extends ScriptedStore implements RedisIdempotencyStore {
  readonly retentionMs: number;
  readonly #server: ServerCheck;

  constructor(options: ResolvedRedisOptions, server: ServerCheck) {
    super(name, options);
    this.retentionMs = options.retentionMs;
    this.#server = server;
  }

  async claim(key: string, claim: IdempotencyClaim): Promise<IdempotencyClaimResult> {
    this.gate.assertClaim(key, claim);
    const { token, fingerprint, leaseMs, recovery } = claim;
    const args = [encodeText(token), encodeText(fingerprint), lease(leaseMs), recovery];
    return claimResult(await this.#run(claimScript, key, args));
  }

  async read(key: string): Promise<IdempotencyRecord | undefined> {
    this.gate.assertKey(key);
    return record(await this.#run(readScript, key, []));
  }

  async heartbeat(key: string, token: string, leaseMs: number): Promise<IdempotencyOwnership> {
    this.gate.assertHeartbeat(key, token, leaseMs);
    return ownership(await this.#run(heartbeatScript, key, [encodeText(token), lease(leaseMs)]));
  }

  async complete(key: string, token: string): Promise<IdempotencyOwnership> {
    this.gate.assertOwner(key, token);
    return ownership(await this.#run(completeScript, key, [encodeText(token), String(this.retentionMs)]));
  }

  async release(key: string, token: string): Promise<IdempotencyOwnership> {
    this.gate.assertOwner(key, token);
    const remembered = [String(fenceMemoryMs), String(this.retentionMs)];
    return ownership(await this.#run(releaseScript, key, [encodeText(token), ...remembered]));
  }

  async hold(key: string, token: string, reason: string): Promise<IdempotencyOwnership> {
    this.gate.assertHold(key, token, reason);
    return ownership(await this.#run(holdScript, key, [encodeText(token), encodeText(reason)]));
  }

  async resolve(
    key: string,
    outcome: "done" | "released",
    decision: IdempotencyDecision,
  ): Promise<"ok" | "not-held"> {
    this.gate.assertResolve(key, outcome, decision);
    const remembered = String(this.retentionMs);
    const args = [String(decision.fence), randomUUID(), outcome, remembered, ...entryOf(decision)];
    return oneOf(await this.#run(resolveScript, key, args), ["ok", "not-held"]);
  }

  async reopen(key: string, decision: IdempotencyDecision): Promise<"ok" | "not-decided"> {
    this.gate.assertReopen(key, decision);
    const args = [String(decision.fence), randomUUID(), ...entryOf(decision)];
    return oneOf(await this.#run(reopenScript, key, args), ["ok", "not-decided"]);
  }

  async readReleased(key: string): Promise<ReleasedKey | undefined> {
    this.gate.assertKey(key);
    return releasedKey(await this.#run(readScript, key, ["free"]));
  }

  async list(query: IdempotencyListQuery): Promise<IdempotencyListing> {
    this.gate.assertList(query);
    return listKeys({ name, options: this.options, read: (key) => this.read(key) }, query);
  }

  async #run(script: RedisScript, key: string, args: readonly string[]): Promise<unknown> {
    const reply = await this.run(script, `key:${encodeText(key)}`, args);
    this.#server.begin();
    return reply;
  }
}

function lease(leaseMs: number): string {
  return String(Math.min(leaseMs, longestMs));
}

function entryOf({ by = "", note = "" }: IdempotencyDecision): [by: string, note: string] {
  return [encodeText(by), encodeText(note)];
}
