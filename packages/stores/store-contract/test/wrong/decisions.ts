import { type Platform, type Store, dayMs } from "../platform.ts";
import {
  type WrongStores,
  decide,
  each,
  instead,
  ownerOf,
  reference,
  roundTrip,
  runOf,
  stateOf,
} from "./wrong-store.ts";
import type { IdempotencyRecord, ReleasedKey } from "@countersign/idempotency";
import { leaseExpired } from "@countersign/idempotency/store";

const fences: Readonly<Record<string, (given: number, own: number) => boolean>> = {
  below: (given, own) => given >= own,
  above: (given, own) => given > 0 && given <= own,
};

type Seen = { readonly fence: number; readonly decision?: ReleasedKey["decision"] | undefined };

type Change = (decision: ReleasedKey["decision"], seen: Seen) => ReleasedKey["decision"] | undefined;

/** Every decision is changed before it is shown; undefined: it is not shown. */
function shown(change: Change): (platform: Platform) => Partial<Store> {
  const changed = <Kept extends Seen>(kept: Kept): Kept =>
    kept.decision === undefined ? kept : { ...kept, decision: change(kept.decision, kept) };
  return ({ store, memory }) => ({
    async read(key) {
      const record = await store.read(key);
      return record && changed(record);
    },
    async readReleased(key) {
      const released = await store.readReleased(key);
      const decision = released && change(released.decision, released);
      return decision && { ...released, decision };
    },
    list(query) {
      const { entries, cursor } = memory.list(query);
      return { cursor, entries: entries.map(({ key, record }) => ({ key, record: changed(record) })) };
    },
  });
}

/** Wrong about whose key is decided, what a decision leaves behind, and what is kept of it. */
export const wrongDecisions: WrongStores = {
  [reference]: {
    ...each(Object.keys(fences), (than) => [
      `resolves by any fence that is not ${than} the attempt's`,
      instead("resolve", (platform, key, outcome, decision) =>
        fences[than]?.(decision.fence, platform.memory.read(key)?.fence ?? Number.NaN)
          ? decide(platform, key, outcome, decision)
          : platform.store.resolve(key, outcome, decision),
      ),
    ]),
    "ends a live run by a decision about an earlier attempt, which it calls not held": instead(
      "resolve",
      async (platform, key, outcome, decision) => {
        const run = runOf(platform, key);
        const answer = await platform.store.resolve(key, outcome, decision);
        const isLater = run !== undefined && decision.fence > 0 && decision.fence < run.fence;
        if (isLater && run.remainingMs > 0) platform.memory.release(key, run.token);
        return answer;
      },
    ),
    "leaves the same token behind at each decision": (platform) => {
      const resolved = new Set<string>();
      return {
        async resolve(key, outcome, decision) {
          const answer = await platform.store.resolve(key, outcome, decision);
          if (answer === "ok") resolved.add(key);
          return answer;
        },
        async read(key) {
          const record = await platform.store.read(key);
          return record?.state === "done" && resolved.has(key) ? { ...record, token: "operator" } : record;
        },
      };
    },
    "resolves a done key once more": instead("resolve", (platform, key, outcome, decision) =>
      stateOf(platform, key) === "done" ? "ok" : platform.store.resolve(key, outcome, decision),
    ),
    "keeps an empty note where nobody gave one": shown((decision) => ({
      ...decision,
      note: decision.note ?? "",
    })),
    "keeps no reason of a run whose lease had expired": shown((decision) => ({
      ...decision,
      reason: decision.reason === leaseExpired ? "" : decision.reason,
    })),
    "forgets a decision at the next claim": shown((decision, { fence }) =>
      decision.fence < fence && decision.reopened === undefined ? undefined : decision,
    ),
    "lists records without their decisions": instead("list", ({ memory }, query) => {
      const { entries, cursor } = memory.list(query);
      const bare = ({ decision: _decision, ...record }: IdempotencyRecord): IdempotencyRecord => record;
      return { cursor, entries: entries.map(({ key, record }) => ({ key, record: bare(record) })) };
    }),
    "removes what was released when it prunes, with its decision": ({ store }) => {
      let hasPruned = false;
      return {
        prune() {
          hasPruned = true;
          return store.prune();
        },
        readReleased: (key) => (hasPruned ? undefined : store.readReleased(key)),
      };
    },
    "tells a decision again when its key is claimed after the retention": ({ store }) => {
      const kept = new Map<string, ReleasedKey["decision"]>();
      return {
        async read(key) {
          const record = await store.read(key);
          if (record?.decision !== undefined) kept.set(key, record.decision);
          const decision = kept.get(key);
          return record && decision ? { ...record, decision } : record;
        },
        async readReleased(key) {
          const released = await store.readReleased(key);
          if (released !== undefined) kept.set(key, released.decision);
          return released;
        },
      };
    },
    "gives a reopening the time of its decision": shown(({ reopened, ...decision }) =>
      reopened === undefined ? decision : { ...decision, reopened: { ...reopened, at: decision.at } },
    ),
    "lets the old owner of a reopened key end it": (platform) => {
      const owners = new Map<string, string>();
      const { store } = platform;
      return {
        resolve(key, outcome, decision) {
          owners.set(key, ownerOf(platform, key, ""));
          return store.resolve(key, outcome, decision);
        },
        complete(key, token) {
          const isOld = owners.get(key) === token && stateOf(platform, key) === "held";
          return store.complete(key, isOld ? ownerOf(platform, key, token) : token);
        },
      };
    },
    "says that it reopens what an attempt has done": instead("reopen", ({ store, memory }, key, decision) => {
      const record = memory.read(key);
      const isOwn = record?.state === "done" && record.decision?.fence !== record.fence;
      return isOwn && record.fence === decision.fence ? "ok" : store.reopen(key, decision);
    }),
    "says that it reopens what is held": instead("reopen", (platform, key, decision) =>
      stateOf(platform, key) === "held" && platform.memory.read(key)?.fence === decision.fence
        ? "ok"
        : platform.store.reopen(key, decision),
    ),
    "reopens by any fence": instead("reopen", ({ store, memory }, key, decision) => {
      const fence = memory.read(key)?.fence ?? memory.readReleased(key)?.fence ?? 0;
      return store.reopen(key, { ...decision, fence });
    }),
    "leaves the key its fence at a reopening": ({ store, memory }) => {
      const isReopened = (key: string, fence: number): boolean => {
        const decision = memory.read(key)?.decision;
        return decision?.reopened !== undefined && decision.fence === fence;
      };
      return {
        async read(key) {
          const record = await store.read(key);
          const { decision } = record ?? {};
          return record && decision?.reopened ? { ...record, fence: decision.fence } : record;
        },
        resolve(key, outcome, decision) {
          const fence = memory.read(key)?.fence ?? 0;
          const isSame = isReopened(key, decision.fence);
          return store.resolve(key, outcome, isSame ? { ...decision, fence } : decision);
        },
      };
    },
    "removes a reopened key after the retention of its decision": ({ store, memory, clock }) => {
      let prunedMs = -Infinity;
      return {
        prune() {
          prunedMs = clock.nowMs;
          return store.prune();
        },
        read(key) {
          const decision = memory.read(key)?.decision;
          const isGone = decision?.reopened !== undefined && prunedMs - decision.at > dayMs;
          return isGone ? undefined : store.read(key);
        },
      };
    },
  },
  "of two steps at once on a held": {
    "completes a key that an operator resolved for its old owner": (platform) => {
      const former = new Map<string, string>();
      return {
        async resolve(key, outcome, decision) {
          const owner = ownerOf(platform, key, "");
          const answer = await platform.store.resolve(key, outcome, decision);
          if (answer === "ok" && outcome === "done") former.set(key, owner);
          return answer;
        },
        complete: (key, token) =>
          former.get(key) === token && stateOf(platform, key) === "done"
            ? "ok"
            : platform.store.complete(key, token),
      };
    },
  },
  "leases are measured": {
    "resolves a live run": instead("resolve", (platform, key, outcome, decision) => {
      const run = runOf(platform, key);
      if (run?.fence === decision.fence) platform.memory.hold(key, run.token, leaseExpired);
      return platform.store.resolve(key, outcome, decision);
    }),
  },
  "hostile tokens, fingerprints,": {
    "makes done whatever the operator decided": instead("resolve", ({ store }, key, _outcome, decision) =>
      store.resolve(key, "done", decision),
    ),
    "forgets the hold's own reason at the decision": shown((decision) => ({ ...decision, reason: "" })),
    "trims notes": instead("resolve", ({ store }, key, outcome, { note, ...decision }) =>
      store.resolve(key, outcome, { ...decision, note: note === undefined ? note : note.trim() || "-" }),
    ),
  },
  "of two steps at once on a key that an": {
    "takes a released key that was claimed since from its run": instead(
      "reopen",
      (platform, key, decision) => {
        const record = platform.memory.read(key);
        if (record?.state !== "running" || record.decision?.fence !== decision.fence)
          return platform.store.reopen(key, decision);
        platform.memory.hold(key, record.token, record.decision.reason);
        return "ok";
      },
    ),
    "looks first and reopens later": instead("reopen", async ({ store, memory }, key, decision) => {
      const wasReleased = memory.readReleased(key)?.decision.fence === decision.fence;
      await roundTrip();
      const answer = await store.reopen(key, decision);
      return wasReleased ? "ok" : answer;
    }),
  },
};
