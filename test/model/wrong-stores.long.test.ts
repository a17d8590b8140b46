// The model is only worth something if it notices a store that breaks a rule: each of these breaks one.
import { describe, expect, test } from "@jest/globals";
import {
  type IdempotencyStore,
  type MemoryIdempotencyStore,
  memoryIdempotencyStore,
} from "@countersign/idempotency";
import * as fc from "fast-check";
import type { Engine } from "./engine.ts";
import { followsReference } from "./follows-reference.ts";
import { retentionMs } from "./reference-store.ts";

type Wrong = (store: MemoryIdempotencyStore) => Partial<IdempotencyStore>;

const ownerOf = (store: MemoryIdempotencyStore, key: string, token: string): string =>
  store.read(key)?.token ?? token;

const wrongs: readonly (readonly [string, Wrong])[] = [
  [
    "release by a stranger",
    (store) => ({ release: (key, token) => store.release(key, ownerOf(store, key, token)) }),
  ],
  [
    "complete by a stranger",
    (store) => ({ complete: (key, token) => store.complete(key, ownerOf(store, key, token)) }),
  ],
  [
    "heartbeat by a stranger",
    (store) => ({ heartbeat: (key, token, ms) => store.heartbeat(key, ownerOf(store, key, token), ms) }),
  ],
  [
    "hold by a stranger",
    (store) => ({ hold: (key, token, why) => store.hold(key, ownerOf(store, key, token), why) }),
  ],
  [
    "heartbeat without effect",
    (store) => ({
      heartbeat: (key, token) => {
        const found = store.read(key);
        return found?.state === "run" && found.token === token ? "ok" : "lost";
      },
    }),
  ],
  [
    "complete that is lost when it is repeated",
    (store) => ({
      complete: (key, token) => (store.read(key)?.state === "done" ? "lost" : store.complete(key, token)),
    }),
  ],
  [
    "claim that does not know its own token",
    (store) => ({
      claim: (key, claim) => {
        const found = store.read(key);
        return found?.state === "run" && found.remainingMs > 0
          ? { ...found, status: "in-flight" }
          : store.claim(key, claim);
      },
    }),
  ],
  [
    "claim of the owner that leaves the lease as it is",
    (store) => ({
      claim: (key, claim) => {
        const found = store.read(key);
        return found?.state === "run" && found.token === claim.token
          ? { status: "acquired", fence: found.fence }
          : store.claim(key, claim);
      },
    }),
  ],
  [
    "claim that always holds",
    (store) => ({ claim: (key, claim) => store.claim(key, { ...claim, recovery: "hold" }) }),
  ],
  [
    "claim that always reruns",
    (store) => ({ claim: (key, claim) => store.claim(key, { ...claim, recovery: "rerun" }) }),
  ],
  [
    "claim that keeps the fingerprint of the first attempt",
    (store) => ({
      claim: (key, claim) =>
        store.claim(key, { ...claim, fingerprint: store.read(key)?.fingerprint ?? claim.fingerprint }),
    }),
  ],
  [
    "fence that does not grow",
    (store) => ({
      claim: (key, claim) => {
        const result = store.claim(key, claim);
        return result.status === "acquired" ? { ...result, fence: 1 } : result;
      },
    }),
  ],
  [
    "lease that ends late",
    (store) => ({ claim: (key, claim) => store.claim(key, { ...claim, leaseMs: claim.leaseMs + 1 }) }),
  ],
  [
    "lease that ends early",
    (store) => ({ heartbeat: (key, token, ms) => store.heartbeat(key, token, ms - 1) }),
  ],
  [
    "release of a held key",
    (store) => ({
      release: (key, token) => {
        const found = store.read(key);
        const isHeld = found?.state === "held" && found.token === token;
        if (!isHeld) return store.release(key, token);
        return store.resolve(key, "released", { fence: found.fence }) === "ok" ? "ok" : "lost";
      },
    }),
  ],
  [
    "resolve of a live run",
    (store) => ({
      resolve: (key, outcome, decision) => {
        const found = store.read(key);
        const isIts = found?.state === "run" && found.fence === decision.fence;
        return isIts ? store.release(key, found.token) && "ok" : store.resolve(key, outcome, decision);
      },
    }),
  ],
  [
    "resolve that mistakes released for done",
    (store) => ({ resolve: (key, _outcome, decision) => store.resolve(key, "done", decision) }),
  ],
  [
    "resolve of whatever attempt has the key",
    (store) => ({
      resolve: (key, outcome) => store.resolve(key, outcome, { fence: store.read(key)?.fence ?? 0 }),
    }),
  ],
  [
    "resolve that leaves the key to its owner",
    (store) => {
      const owners = new Map<string, string>();
      return {
        resolve: (key, outcome, decision) => {
          const owner = store.read(key)?.token ?? "";
          const answer = store.resolve(key, outcome, decision);
          if (answer === "ok" && outcome === "done") owners.set(key, owner);
          return answer;
        },
        complete: (key, token) => {
          const isDone = store.read(key)?.state === "done";
          return isDone && owners.get(key) === token ? "ok" : store.complete(key, token);
        },
      };
    },
  ],
  [
    "decision that is forgotten at the next claim",
    (store) => ({
      read: (key) => {
        const found = store.read(key);
        const isEarlier = (found?.decision?.fence ?? Infinity) < (found?.fence ?? 0);
        return isEarlier ? { ...found!, decision: undefined } : found;
      },
    }),
  ],
  [
    "reopening of what an attempt has done",
    (store) => ({
      reopen: (key, decision) => {
        const found = store.read(key);
        const isOwn = found?.state === "done" && found.fence === decision.fence;
        return isOwn ? "ok" : store.reopen(key, decision);
      },
    }),
  ],
  [
    "reopening that leaves the key its fence",
    (store) => ({
      read: (key) => {
        const found = store.read(key);
        const { decision } = found ?? {};
        return found && decision?.reopened ? { ...found, fence: decision.fence } : found;
      },
    }),
  ],
  [
    "reopening that gives the key back to its owner",
    (store) => {
      const owners = new Map<string, string>();
      return {
        resolve: (key, outcome, decision) => {
          owners.set(key, store.read(key)?.token ?? "");
          return store.resolve(key, outcome, decision);
        },
        read: (key) => {
          const found = store.read(key);
          const token = owners.get(key);
          return found?.decision?.reopened && token !== undefined ? { ...found, token } : found;
        },
      };
    },
  ],
  [
    "lease that is longer than one when the clock was set back",
    (store) => ({
      claim: (key, claim) => {
        const found = store.read(key);
        const isForeign = found?.state === "run" && found.token !== claim.token && found.remainingMs > 0;
        const leaseMs = isForeign ? Math.max(claim.leaseMs, found.remainingMs) : claim.leaseMs;
        return store.claim(key, { ...claim, leaseMs });
      },
    }),
  ],
  [
    "complete of a held key that is refused",
    (store) => ({
      complete: (key, token) => (store.read(key)?.state === "held" ? "lost" : store.complete(key, token)),
    }),
  ],
  [
    "read that hides an expired run",
    (store) => ({
      read: (key) => {
        const found = store.read(key);
        return found?.state === "run" && found.remainingMs <= 0 ? undefined : found;
      },
    }),
  ],
  ["prune that counts wrongly", (store) => ({ prune: () => store.prune() + 1 })],
  [
    "done that is forgotten early",
    (store) => ({
      claim: (key, claim) => {
        const answer = store.claim(key, claim);
        return answer.status === "done" ? { status: "acquired", fence: 1_000_000 } : answer;
      },
    }),
  ],
];

describe("followsReference", () => {
  test.each(wrongs)("notices a %s", async (_name, wrong) => {
    const property = followsReference(memoryWith(wrong));
    const { failed } = await fc.check(property, { numRuns: 500, endOnFailure: true });
    expect(failed).toBe(true);
  });

  test("passes the same store without a fault", async () => {
    const { failed } = await fc.check(followsReference(memoryWith(() => ({}))), { numRuns: 50 });
    expect(failed).toBe(false);
  });
});

function memoryWith(wrong: Wrong): Engine {
  return {
    pays: false,
    numRuns: 1,
    prunes: true,
    open: async (clock) => {
      const right = memoryIdempotencyStore({ retentionMs, now: () => clock.nowMs });
      const faults = wrong(right);
      // Methods of a class are not spread: the faults stand before them.
      const store = new Proxy(right, {
        get: (target, name) => Reflect.get(faults, name) ?? bound(target, name),
      });
      return { store: () => store, restart() {}, close() {} };
    },
    close: async () => {},
  };
}

function bound(target: object, name: string | symbol): unknown {
  const member: unknown = Reflect.get(target, name);
  return typeof member === "function" ? member.bind(target) : member;
}
