import type { IdempotencyClaim } from "@countersign/idempotency";
import { leaseExpired } from "@countersign/idempotency/store";
import { type Platform, dayMs } from "../platform.ts";
import { type WrongStore, clockAheadMs, runOf } from "./wrong-store.ts";

/** A claim with which the store leaves the present owner its lease. */
function leaving(platform: Platform, key: string, claim: IdempotencyClaim): IdempotencyClaim {
  const run = runOf(platform, key);
  if (run === undefined || run.token === claim.token || run.remainingMs <= 0) return claim;
  return { ...claim, leaseMs: Math.max(claim.leaseMs, run.remainingMs) };
}

/** Wrong when the clock is set, and at what a claim leaves to the present owner. */
export const wrongClocks: readonly WrongStore[] = [
  {
    does: "tells of one lease and leaves the rest",
    wrong: (platform) => ({
      async claim(key, claim) {
        const result = await platform.store.claim(key, leaving(platform, key, claim));
        if (result.status !== "in-flight") return result;
        return { ...result, remainingMs: Math.min(result.remainingMs, claim.leaseMs) };
      },
    }),
  },
  {
    does: "cuts a lease under recovery rerun alone",
    wrong: (platform) => ({
      claim: (key, claim) =>
        platform.store.claim(key, claim.recovery === "rerun" ? claim : leaving(platform, key, claim)),
    }),
  },
  {
    does: "gives a live run the lease of whoever claims it",
    wrong: (platform) => ({
      claim(key, claim) {
        const run = runOf(platform, key);
        const isLive = run !== undefined && run.token !== claim.token && run.remainingMs > 0;
        if (isLive) platform.memory.heartbeat(key, run.token, claim.leaseMs);
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "shortens a lease at a heartbeat by what the process is behind",
    fails: "leases are measured",
    wrong: ({ store }) => ({
      heartbeat: (key, token, leaseMs) => store.heartbeat(key, token, leaseMs + Math.min(0, clockAheadMs())),
    }),
  },
  {
    does: "tells what remains of a lease by the clock of the process",
    fails: "leases are measured",
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "run"
          ? { ...record, remainingMs: record.remainingMs - clockAheadMs() }
          : record;
      },
    }),
  },
  {
    does: "resolves a run that has expired by the clock of the process",
    fails: "leases are measured",
    wrong: (platform) => ({
      resolve(key, outcome, decision) {
        const run = runOf(platform, key);
        if (run !== undefined && run.fence === decision.fence && run.remainingMs <= clockAheadMs()) {
          platform.memory.hold(key, run.token, leaseExpired);
        }
        return platform.store.resolve(key, outcome, decision);
      },
    }),
  },
  {
    does: "forgets a done key by the clock of the process that reads it",
    fails: "retentions are measured",
    wrong: ({ store }) => ({
      async read(key) {
        const record = await store.read(key);
        return record?.state === "done" && clockAheadMs() > dayMs ? undefined : record;
      },
    }),
  },
];
