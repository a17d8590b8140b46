import type { Platform, Store } from "../platform.ts";
import { type WrongStore, type WrongStores, decide, each, instead, reference } from "./wrong-store.ts";
import type { ReleasedKey } from "@countersign/idempotency";

type Event =
  | "takeover"
  | "release"
  | "resolve"
  | "end of retention"
  | "pruning of done"
  | "pruning of released"
  | "restart";

type Kept = { readonly fence: number; readonly decision?: ReleasedKey["decision"] | undefined };

const wasStopped = new WeakSet();

const rememberingStops = ({ engine }: Platform) => ({
  stop() {
    engine.isRunning = false;
    wasStopped.add(engine);
  },
});

const highBeginning = 1_800_000_000_000_000;

/** A store that shows another fence for each of its own. */
function withFences(
  { store, memory }: Platform,
  next: (key: string) => number,
): Required<Pick<Store, Renamed>> {
  const shown = new Map<string, Map<number, number>>();
  const shownOf = (key: string, real: number): number => {
    const ofKey = shown.get(key) ?? new Map<number, number>();
    const fence = ofKey.get(real) ?? next(key);
    shown.set(key, ofKey.set(real, fence));
    return fence;
  };
  // Where fences begin again, two have one name: the later one is meant.
  const realOf = (key: string, fence: number): number => {
    let found = 0;
    for (const [real, known] of shown.get(key) ?? []) if (known === fence) found = real;
    return found;
  };
  const renamed = <Record extends Kept>(key: string, kept: Record): Record => {
    const { decision } = kept;
    const about = decision && { ...decision, fence: shownOf(key, decision.fence) };
    return { ...kept, fence: shownOf(key, kept.fence), ...(about && { decision: about }) };
  };
  return {
    async claim(key, claim) {
      const result = await store.claim(key, claim);
      return result.status === "acquired" ? { ...result, fence: shownOf(key, result.fence) } : result;
    },
    async read(key) {
      const record = await store.read(key);
      return record && renamed(key, record);
    },
    async readReleased(key) {
      const released = await store.readReleased(key);
      return released && renamed(key, released);
    },
    list(query) {
      const { entries, cursor } = memory.list(query);
      return { cursor, entries: entries.map(({ key, record }) => ({ key, record: renamed(key, record) })) };
    },
    resolve: (key, outcome, { fence, ...given }) =>
      store.resolve(key, outcome, { ...given, fence: realOf(key, fence) }),
    reopen: (key, { fence, ...given }) => store.reopen(key, { ...given, fence: realOf(key, fence) }),
  };
}

type Renamed = "claim" | "read" | "readReleased" | "list" | "resolve" | "reopen";

/** A store that counts the fences of each key on its own, and begins again after the event. */
export function countingFences(
  forgetsAt?: Event,
  beginning: number = highBeginning,
): (platform: Platform) => Partial<Store> {
  return (platform) => {
    const { store, memory, engine } = platform;
    const counts = new Map<string, number>();
    const free = new Set<string>();
    const begin = (event: Event, key: string): void => {
      if (event === forgetsAt) counts.delete(key);
    };
    const fences = withFences(platform, (key) => {
      const count = (counts.get(key) ?? beginning) + 1;
      counts.set(key, count);
      return count;
    });
    return {
      ...fences,
      async claim(key, claim) {
        if (engine.isRunning && wasStopped.delete(engine) && forgetsAt === "restart") counts.clear();
        const before = memory.read(key);
        if (before === undefined && counts.has(key) && !free.has(key)) begin("end of retention", key);
        if (memory.readReleased(key) !== undefined) begin("resolve", key);
        const isTakeover =
          before?.state === "running" && before.remainingMs <= 0 && before.token !== claim.token;
        const count = counts.get(key);
        const isKept = isTakeover && claim.recovery === "rerun" && forgetsAt === "takeover";
        if (isKept && count !== undefined) counts.set(key, count - 1);
        const result = await fences.claim(key, claim);
        if (result.status === "acquired") free.delete(key);
        return result;
      },
      async release(key, token) {
        const answer = await store.release(key, token);
        if (answer === "ok") begin("release", key);
        if (answer === "ok") free.add(key);
        return answer;
      },
      async resolve(key, outcome, decision) {
        const answer = await fences.resolve(key, outcome, decision);
        if (answer === "ok" && outcome === "released") free.add(key);
        return answer;
      },
      async prune() {
        const removed = await store.prune();
        for (const key of counts.keys()) {
          if (memory.read(key) !== undefined || memory.readReleased(key) !== undefined) continue;
          begin(free.has(key) ? "pruning of released" : "pruning of done", key);
          free.add(key);
        }
        return removed;
      },
    };
  };
}

/** Wrong about fences, and when the engine is full, stopped or closed. */
export const wrongEngines: WrongStores = {
  [reference]: each(
    ["takeover", "release", "resolve", "end of retention", "pruning of released"],
    countingAnew,
  ),
  "the fence grows over": each(["restart"], countingAnew),
  "a fence is": {
    "begins its fences at one": countingFences(undefined, 0),
  },
  "the fence grows when": {
    ...each(["pruning of done"], countingAnew),
    "gives the time for a fence, also when the clock was set back": timeForFence,
  },
  "every call after": {
    "answers a heartbeat after close": instead("heartbeat", ({ store }, key, token, leaseMs) => {
      try {
        return store.heartbeat(key, token, leaseMs);
      } catch {
        return "lost";
      }
    }),
  },
  "a full store": {
    "makes room by the oldest done key when it is full": ({ store, memory }) => {
      const evicted = new Set<string>();
      return {
        claim(key, claim) {
          try {
            return store.claim(key, claim);
          } catch (error) {
            evicted.add(memory.list({ state: "done", limit: 1 }).entries[0]?.key ?? "");
            throw error;
          }
        },
        read: (key) => (evicted.has(key) ? undefined : store.read(key)),
      };
    },
    "waves a claim through when it is full": instead("claim", ({ store, memory }, key, claim) => {
      try {
        return store.claim(key, claim);
      } catch {
        // A closed one still throws.
        memory.read(key);
        return { status: "acquired", fence: 1_000_000 };
      }
    }),
  },
  "every call while": {
    "reads every key as absent while the engine is stopped": {
      ignores: "a stopped engine",
      wrong: instead("read", ({ store, engine }, key) => (engine.isRunning ? store.read(key) : undefined)),
    },
    "waits for ever while the engine is stopped": {
      ignores: "a stopped engine",
      wrong: instead("claim", ({ store, engine }, key, claim) =>
        engine.isRunning ? store.claim(key, claim) : new Promise(() => {}),
      ),
    },
  },
  "after the engine is back the": {
    "does not find the engine again": {
      engine: rememberingStops,
      wrong: ({ store, engine }) => ({
        claim(key, claim) {
          if (wasStopped.has(engine)) throw new Error("not connected");
          return store.claim(key, claim);
        },
        read(key) {
          if (wasStopped.has(engine)) throw new Error("not connected");
          return store.read(key);
        },
      }),
    },
  },
  "after the engine is back it": {
    "forgets held keys with the engine": {
      engine: ({ engine, memory }) => ({
        stop() {
          engine.isRunning = false;
          for (const { key } of memory.list({ state: "held", limit: 1_000 }).entries) {
            decide({ memory }, key, "released");
          }
        },
      }),
    },
  },
};

function countingAnew(event: Event): readonly [string, WrongStore] {
  return [
    `counts fences anew after the ${event}`,
    {
      wrong: countingFences(event),
      engine: rememberingStops,
    },
  ];
}

/** The time, and a count of the attempts that came at the same millisecond. */
function timeForFence(platform: Platform): Partial<Store> {
  let count = 0;
  return withFences(platform, () => {
    count += 1;
    return platform.clock.nowMs * 1_000 + count;
  });
}
