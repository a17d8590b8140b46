import type { IdempotencyClaim } from "@countersign/idempotency";
import type { Platform } from "../platform.ts";
import { type WrongStore, acquired, clockAheadMs, decide, isExpired, ownerOf, runOf } from "./wrong-store.ts";

function isTakeover(platform: Platform, key: string, { token, recovery }: IdempotencyClaim): boolean {
  return isExpired(platform, key) && ownerOf(platform, key, token) !== token && recovery === "rerun";
}

export const wrongLeases: readonly WrongStore[] = [
  {
    does: "gives no lease to who takes over",
    fails: "of many concurrent claims exactly",
    wrong: (platform) => ({
      claim: (key, claim) =>
        platform.store.claim(key, isTakeover(platform, key, claim) ? { ...claim, leaseMs: 0 } : claim),
    }),
  },
  {
    does: "runs an expired run again under recovery hold",
    wrong: ({ store }) => ({ claim: (key, claim) => store.claim(key, { ...claim, recovery: "rerun" }) }),
  },
  {
    does: "runs a held key again under recovery rerun when its lease had expired",
    wrong: ({ store, memory }) => ({
      claim(key, claim) {
        const record = memory.read(key);
        const isHeldByExpiry = record?.state === "held" && record.reason === "lease-expired";
        if (isHeldByExpiry && claim.recovery === "rerun") decide({ memory }, key, "released");
        return store.claim(key, claim);
      },
    }),
  },
  {
    does: "holds an expired run at its owner's own claim",
    wrong: (platform) => ({
      claim(key, claim) {
        const isOwn = isExpired(platform, key) && ownerOf(platform, key, "") === claim.token;
        if (isOwn && claim.recovery === "hold") platform.memory.hold(key, claim.token, "lease-expired");
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "takes a lease for live at its end",
    wrong: (platform) => ({
      claim(key, claim) {
        const run = runOf(platform, key);
        const isForeign = run !== undefined && run.token !== claim.token;
        return isForeign && run.remainingMs === 0
          ? { status: "in-flight", fingerprint: run.fingerprint, remainingMs: 1 }
          : platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "takes a lease for expired one millisecond early",
    wrong: (platform) => ({
      claim(key, claim) {
        const run = runOf(platform, key);
        if (run?.remainingMs === 1) platform.memory.heartbeat(key, run.token, 0);
        return platform.store.claim(key, claim);
      },
    }),
  },
  {
    does: "tells a claim of the whole lease in place of what is left",
    wrong: ({ store }) => ({
      async claim(key, claim) {
        const result = await store.claim(key, claim);
        return result.status === "in-flight" ? { ...result, remainingMs: claim.leaseMs } : result;
      },
    }),
  },
  {
    does: "measures leases by the wall clock of the process",
    fails: "retentions are measured",
    platform: { clockShiftMs: clockAheadMs },
  },
  {
    does: "does nothing at a heartbeat",
    wrong: (platform) => ({
      heartbeat: (key, token) => (runOf(platform, key)?.token === token ? "ok" : "lost"),
    }),
  },
  {
    does: "never shortens a lease by a heartbeat",
    wrong: (platform) => ({
      heartbeat(key, token, leaseMs) {
        const remainingMs = runOf(platform, key)?.remainingMs ?? 0;
        return platform.store.heartbeat(key, token, Math.max(leaseMs, remainingMs));
      },
    }),
  },
  {
    does: "moves the lease at a stranger's heartbeat, which it calls lost",
    wrong: (platform) => ({
      async heartbeat(key, token, leaseMs) {
        await platform.store.heartbeat(key, ownerOf(platform, key, token), leaseMs);
        return runOf(platform, key)?.token === token ? "ok" : "lost";
      },
    }),
  },
  {
    does: "takes a claim of an expired run by its owner for another's",
    wrong: (platform) => ({
      claim(key, claim) {
        const run = runOf(platform, key);
        if (run === undefined || run.token !== claim.token || run.remainingMs > 0) {
          return platform.store.claim(key, claim);
        }
        platform.memory.release(key, claim.token);
        const result = platform.memory.claim(key, claim);
        return result.status === "acquired" ? acquired(result.fence) : result;
      },
    }),
  },
  ...(["complete", "heartbeat", "release", "hold"] as const).map((method): WrongStore => ({
    does: `refuses an owner whose lease has expired: ${method}()`,
    wrong: (platform) => ({
      [method]: (key: string, token: string, more: never) =>
        isExpired(platform, key) ? "lost" : platform.store[method](key, token, more),
    }),
  })),
  ...(["heartbeat", "release", "hold"] as const).map((method): WrongStore => ({
    does: `takes a stranger for the owner: ${method}()`,
    fails: "a token is",
    wrong: (platform) => ({
      [method]: (key: string, token: string, more: never) =>
        platform.store[method](key, ownerOf(platform, key, token), more),
    }),
  })),
];
