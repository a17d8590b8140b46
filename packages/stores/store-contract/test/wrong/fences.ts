import type { ReleasedKey } from "@countersign/idempotency";
import type { Platform, Store } from "../platform.ts";
import type { WrongStore } from "./wrong-store.ts";

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
        const isTakeover = before?.state === "run" && before.remainingMs <= 0 && before.token !== claim.token;
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

const noticed: Readonly<Record<Event, string | undefined>> = {
  takeover: undefined,
  release: undefined,
  resolve: undefined,
  "end of retention": undefined,
  "pruning of done": "the fence grows when",
  "pruning of released": undefined,
  restart: "the fence grows over",
};

export const wrongFences: readonly WrongStore[] = [
  ...(Object.keys(noticed) as Event[]).map((event): WrongStore => {
    const fails = noticed[event];
    return {
      does: `counts fences anew after the ${event}`,
      ...(fails !== undefined && { fails }),
      wrong: countingFences(event),
      engine: ({ engine }) => ({
        stop() {
          engine.isRunning = false;
          wasStopped.add(engine);
        },
      }),
    };
  }),
  {
    does: "begins its fences at one",
    fails: "a fence is",
    wrong: countingFences(undefined, 0),
  },
  {
    does: "gives the time for a fence, also when the clock was set back",
    fails: "the fence grows when",
    wrong: timeForFence,
  },
];

/** The time, and a count of the attempts that came at the same millisecond. */
function timeForFence(platform: Platform): Partial<Store> {
  let count = 0;
  return withFences(platform, () => {
    count += 1;
    return platform.clock.nowMs * 1_000 + count;
  });
}
