import { type Platform, dayMs } from "../platform.ts";
import {
  type WrongStores,
  acquired,
  clockAheadMs,
  decide,
  each,
  instead,
  isExpired,
  ownerOf,
  reference,
  runOf,
} from "./wrong-store.ts";
import type { IdempotencyClaim } from "@countersign/idempotency";
import { leaseExpired } from "@countersign/idempotency/store";

function isTakeover(platform: Platform, key: string, { token, recovery }: IdempotencyClaim): boolean {
  return isExpired(platform, key) && ownerOf(platform, key, token) !== token && recovery === "rerun";
}

/** A claim with which the store leaves the present owner its lease. */
function leaving(platform: Platform, key: string, claim: IdempotencyClaim): IdempotencyClaim {
  const run = runOf(platform, key);
  if (run === undefined || run.token === claim.token || run.remainingMs <= 0) return claim;
  return { ...claim, leaseMs: Math.max(claim.leaseMs, run.remainingMs) };
}

/** Wrong at claims, reads and leases, and when the clock is set. */
export const wrongClaims: WrongStores = {
  "leases are measured": {
    "shows nothing of what is left of a lease": instead("read", async ({ store }, key) => {
      const record = await store.read(key);
      return record?.state === "running" ? { ...record, remainingMs: 0 } : record;
    }),
    "lengthens leases by what the process is ahead": instead("claim", ({ store }, key, claim) =>
      store.claim(key, { ...claim, leaseMs: claim.leaseMs + Math.max(0, clockAheadMs()) }),
    ),
    "shortens leases by what the process is behind": instead("claim", ({ store }, key, claim) =>
      store.claim(key, { ...claim, leaseMs: claim.leaseMs + Math.min(0, clockAheadMs()) }),
    ),
    "shortens a lease at a heartbeat by what the process is behind": instead(
      "heartbeat",
      ({ store }, key, token, leaseMs) => store.heartbeat(key, token, leaseMs + Math.min(0, clockAheadMs())),
    ),
    "tells what remains of a lease by the clock of the process": instead("read", async ({ store }, key) => {
      const record = await store.read(key);
      return record?.state === "running"
        ? { ...record, remainingMs: record.remainingMs - clockAheadMs() }
        : record;
    }),
    "resolves a run that has expired by the clock of the process": instead(
      "resolve",
      (platform, key, outcome, decision) => {
        const run = runOf(platform, key);
        if (run !== undefined && run.fence === decision.fence && run.remainingMs <= clockAheadMs()) {
          platform.memory.hold(key, run.token, leaseExpired);
        }
        return platform.store.resolve(key, outcome, decision);
      },
    ),
  },
  [reference]: {
    "tells a duplicate its own fingerprint": instead("claim", async ({ store }, key, claim) => {
      const result = await store.claim(key, claim);
      return result.status === "in-flight" ? { ...result, fingerprint: claim.fingerprint } : result;
    }),
    "leaves the lease as it is at a live owner's own claim": instead("claim", (platform, key, claim) => {
      const run = runOf(platform, key);
      if (run?.token === claim.token && run.remainingMs > 0) return acquired(run.fence);
      return platform.store.claim(key, claim);
    }),
    "holds an expired run that is read": instead("read", (platform, key) => {
      if (isExpired(platform, key)) platform.memory.hold(key, ownerOf(platform, key, ""), "lease-expired");
      return platform.store.read(key);
    }),
    "shows a millisecond of an expired lease": instead("read", async ({ store }, key) => {
      const record = await store.read(key);
      return record?.state === "running"
        ? { ...record, remainingMs: record.remainingMs < 0 ? 1 : record.remainingMs }
        : record;
    }),
    "begins no lease at its owner's claim of an expired run": instead("claim", (platform, key, claim) => {
      const run = runOf(platform, key);
      return run?.token === claim.token && run.remainingMs <= 0
        ? acquired(run.fence)
        : platform.store.claim(key, claim);
    }),
    "takes one millisecond from a lease at a heartbeat": instead(
      "heartbeat",
      ({ store }, key, token, leaseMs) => store.heartbeat(key, token, leaseMs - 1),
    ),
    ...each(["complete", "heartbeat", "release", "hold"], (method) => [
      `refuses an owner whose lease has expired: ${method}()`,
      (platform) => ({
        [method]: (key: string, token: string, more: never) =>
          isExpired(platform, key) ? "lost" : platform.store[method](key, token, more),
      }),
    ]),
    "runs an expired run again under recovery hold": instead("claim", ({ store }, key, claim) =>
      store.claim(key, { ...claim, recovery: "rerun" }),
    ),
    "runs a held key again under recovery rerun when its lease had expired": instead(
      "claim",
      ({ store, memory }, key, claim) => {
        const record = memory.read(key);
        const isHeldByExpiry = record?.state === "held" && record.reason === "lease-expired";
        if (isHeldByExpiry && claim.recovery === "rerun") decide({ memory }, key, "released");
        return store.claim(key, claim);
      },
    ),
    "holds an expired run at its owner's own claim": instead("claim", (platform, key, claim) => {
      const isOwn = isExpired(platform, key) && ownerOf(platform, key, "") === claim.token;
      if (isOwn && claim.recovery === "hold") platform.memory.hold(key, claim.token, "lease-expired");
      return platform.store.claim(key, claim);
    }),
    "takes a lease for live at its end": instead("claim", (platform, key, claim) => {
      const run = runOf(platform, key);
      const isForeign = run !== undefined && run.token !== claim.token;
      return isForeign && run.remainingMs === 0
        ? { status: "in-flight", fingerprint: run.fingerprint, remainingMs: 1 }
        : platform.store.claim(key, claim);
    }),
    "takes a lease for expired one millisecond early": instead("claim", (platform, key, claim) => {
      const run = runOf(platform, key);
      if (run?.remainingMs === 1) platform.memory.heartbeat(key, run.token, 0);
      return platform.store.claim(key, claim);
    }),
    "tells a claim of the whole lease in place of what is left": instead(
      "claim",
      async ({ store }, key, claim) => {
        const result = await store.claim(key, claim);
        return result.status === "in-flight" ? { ...result, remainingMs: claim.leaseMs } : result;
      },
    ),
    "does nothing at a heartbeat": instead("heartbeat", (platform, key, token) =>
      runOf(platform, key)?.token === token ? "ok" : "lost",
    ),
    "never shortens a lease by a heartbeat": instead("heartbeat", (platform, key, token, leaseMs) => {
      const remainingMs = runOf(platform, key)?.remainingMs ?? 0;
      return platform.store.heartbeat(key, token, Math.max(leaseMs, remainingMs));
    }),
    "moves the lease at a stranger's heartbeat, which it calls lost": instead(
      "heartbeat",
      async (platform, key, token, leaseMs) => {
        await platform.store.heartbeat(key, ownerOf(platform, key, token), leaseMs);
        return runOf(platform, key)?.token === token ? "ok" : "lost";
      },
    ),
    "takes a claim of an expired run by its owner for another's": instead("claim", (platform, key, claim) => {
      const run = runOf(platform, key);
      if (run === undefined || run.token !== claim.token || run.remainingMs > 0) {
        return platform.store.claim(key, claim);
      }
      platform.memory.release(key, claim.token);
      const result = platform.memory.claim(key, claim);
      return result.status === "acquired" ? acquired(result.fence) : result;
    }),
    "tells of one lease and leaves the rest": instead("claim", async (platform, key, claim) => {
      const result = await platform.store.claim(key, leaving(platform, key, claim));
      if (result.status !== "in-flight") return result;
      return { ...result, remainingMs: Math.min(result.remainingMs, claim.leaseMs) };
    }),
    "cuts a lease under recovery rerun alone": instead("claim", (platform, key, claim) =>
      platform.store.claim(key, claim.recovery === "rerun" ? claim : leaving(platform, key, claim)),
    ),
    "gives a live run the lease of whoever claims it": instead("claim", (platform, key, claim) => {
      const run = runOf(platform, key);
      const isLive = run !== undefined && run.token !== claim.token && run.remainingMs > 0;
      if (isLive) platform.memory.heartbeat(key, run.token, claim.leaseMs);
      return platform.store.claim(key, claim);
    }),
  },
  "after the engine is back the": {
    "takes a live owner's own claim for another's": instead("claim", (platform, key, claim) => {
      const run = runOf(platform, key);
      if (run === undefined || run.remainingMs <= 0) return platform.store.claim(key, claim);
      return { status: "in-flight", fingerprint: run.fingerprint, remainingMs: run.remainingMs };
    }),
  },
  "of two steps at once on a released": {
    "gives a live owner's own claim another fence": instead("claim", (platform, key, claim) => {
      const run = runOf(platform, key);
      if (run?.token === claim.token && run.remainingMs > 0) platform.memory.release(key, claim.token);
      return platform.store.claim(key, claim);
    }),
  },
  "hostile tokens, fingerprints,": {
    "forgets the reason of a held key": instead("claim", async ({ store }, key, claim) => {
      const result = await store.claim(key, claim);
      return result.status === "held" && result.reason !== "lease-expired"
        ? { ...result, reason: "" }
        : result;
    }),
  },
  "a fence is": {
    "gives every attempt the fence 1": instead("claim", async ({ store }, key, claim) => {
      const result = await store.claim(key, claim);
      return result.status === "acquired" ? acquired(1) : result;
    }),
  },
  "of many concurrent claims exactly": {
    "gives no lease to who takes over": instead("claim", (platform, key, claim) =>
      platform.store.claim(key, isTakeover(platform, key, claim) ? { ...claim, leaseMs: 0 } : claim),
    ),
  },
  "retentions are measured": {
    "measures leases by the wall clock of the process": { platform: { clockShiftMs: clockAheadMs } },
    "forgets a done key by the clock of the process that reads it": instead(
      "read",
      async ({ store }, key) => {
        const record = await store.read(key);
        return record?.state === "done" && clockAheadMs() > dayMs ? undefined : record;
      },
    ),
  },
  "a token is": each(["heartbeat", "release", "hold"], (method) => [
    `takes a stranger for the owner: ${method}()`,
    (platform) => ({
      [method]: (key: string, token: string, more: never) =>
        platform.store[method](key, ownerOf(platform, key, token), more),
    }),
  ]),
};
