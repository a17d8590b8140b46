import type { KeptDecision } from "@countersign/idempotency";
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

const wasStopped = new WeakSet();

const highBeginning = 1_800_000_000_000_000;

/** A store that counts the fences of each key on its own, and begins again after the event. */
export function countingFences(
  forgetsAt?: Event,
  beginning: number = highBeginning,
): (platform: Platform) => Partial<Store> {
  return (platform) => {
    const { store, memory, engine } = platform;
    const counts = new Map<string, { real: number; shown: number; isFree: boolean }>();
    const shownOf = (key: string, real: number): number => {
      const count = counts.get(key) ?? { real: -1, shown: beginning, isFree: false };
      if (count.real !== real) counts.set(key, { real, shown: count.shown + 1, isFree: false });
      return counts.get(key)?.shown ?? beginning;
    };
    // A decision has the fence that the key had then.
    const shownThen = new Map<string, Map<number, number>>();
    const decided = <Kept extends { readonly decision?: KeptDecision | undefined }>(
      key: string,
      kept: Kept,
    ): Kept => {
      const { decision } = kept;
      if (decision === undefined) return kept;
      return {
        ...kept,
        decision: { ...decision, fence: shownThen.get(key)?.get(decision.fence) ?? decision.fence },
      };
    };
    const free = (key: string, forgets: boolean): void => {
      const count = counts.get(key);
      if (count === undefined) return;
      counts.set(key, { ...count, isFree: true, shown: forgets ? beginning : count.shown });
    };
    return {
      async claim(key, claim) {
        if (engine.isRunning && wasStopped.delete(engine) && forgetsAt === "restart") counts.clear();
        const before = memory.read(key);
        const count = counts.get(key);
        if (before === undefined && count !== undefined && !count.isFree)
          free(key, forgetsAt === "end of retention");
        if (memory.readReleased(key) !== undefined) free(key, forgetsAt === "resolve");
        const result = await store.claim(key, claim);
        if (result.status !== "acquired") return result;
        const isTakeover = before?.state === "run" && before.token !== claim.token;
        if (isTakeover && forgetsAt === "takeover" && count !== undefined) {
          counts.set(key, { ...count, real: result.fence });
        }
        return { ...result, fence: shownOf(key, result.fence) };
      },
      async read(key) {
        const record = await store.read(key);
        return record === undefined ? record : decided(key, { ...record, fence: shownOf(key, record.fence) });
      },
      async readReleased(key) {
        const released = await store.readReleased(key);
        return released && decided(key, { ...released, fence: shownOf(key, released.fence) });
      },
      list(query) {
        const listing = memory.list(query);
        const shown = ({ key, record }: (typeof listing.entries)[number]) => ({
          key,
          record: decided(key, { ...record, fence: shownOf(key, record.fence) }),
        });
        return { ...listing, entries: listing.entries.map(shown) };
      },
      async release(key, token) {
        const answer = await store.release(key, token);
        if (answer === "ok") free(key, forgetsAt === "release");
        return answer;
      },
      async resolve(key, outcome, { fence, ...given }) {
        const count = counts.get(key);
        const real = count?.shown === fence ? count.real : 0;
        const answer = await store.resolve(key, outcome, { ...given, fence: real });
        if (answer === "ok") shownThen.set(key, (shownThen.get(key) ?? new Map()).set(real, fence));
        if (answer === "ok" && outcome === "released") free(key, false);
        return answer;
      },
      reopen(key, { fence, ...given }) {
        const count = counts.get(key);
        return store.reopen(key, { ...given, fence: count?.shown === fence ? count.real : 0 });
      },
      async prune() {
        const removed = await store.prune();
        for (const [key, count] of counts) {
          if (memory.read(key) !== undefined) continue;
          free(key, forgetsAt === (count.isFree ? "pruning of released" : "pruning of done"));
        }
        return removed;
      },
    };
  };
}

/** Wrong fences: each begins again at another event. */
export const wrongFences: readonly WrongStore[] = [
  {
    does: "keeps the fence at a takeover",
    wrong: countingFences("takeover"),
  },
  {
    does: "counts fences anew after a release",
    fails: ["after the engine is back it", "the fence grows over"],
    wrong: countingFences("release"),
  },
  {
    does: "counts fences anew after an operator's release",
    wrong: countingFences("resolve"),
  },
  {
    does: "counts fences anew after the retention",
    wrong: countingFences("end of retention"),
  },
  {
    does: "counts fences anew after a done key was pruned",
    fails: ["the fence grows when"],
    wrong: countingFences("pruning of done"),
  },
  {
    does: "counts fences anew after a released key was pruned",
    wrong: countingFences("pruning of released"),
  },
  {
    does: "counts fences anew after a restart of the engine",
    fails: ["the fence grows over", "after the engine is back it"],
    wrong: countingFences("restart"),
    engine: ({ engine }) => ({
      stop() {
        engine.isRunning = false;
        wasStopped.add(engine);
      },
    }),
  },
  {
    does: "begins its fences at one",
    fails: ["a fence is as"],
    wrong: countingFences(undefined, 0),
  },
  {
    does: "gives the time for a fence, also when the clock was set back",
    fails: ["the fence grows when"],
    wrong: timeForFence,
  },
];

/** The time, and a count of the attempts that came at the same millisecond. */
function timeForFence(platform: Platform): Partial<Store> {
  const { store, memory, clock } = platform;
  const shown = new Map<number, number>();
  const shownOf = (real: number): number => {
    const fence = shown.get(real) ?? clock.nowMs * 1_000 + shown.size;
    shown.set(real, fence);
    return fence;
  };
  const shownRecord = <Kept extends { readonly fence: number; readonly decision?: KeptDecision | undefined }>(
    kept: Kept,
  ): Kept => {
    const { decision } = kept;
    const fence = shownOf(kept.fence);
    return decision === undefined
      ? { ...kept, fence }
      : { ...kept, fence, decision: { ...decision, fence: shownOf(decision.fence) } };
  };
  const realOf = (fence: number): number => [...shown].find(([, known]) => known === fence)?.[0] ?? 0;
  return {
    async claim(key, claim) {
      const result = await store.claim(key, claim);
      return result.status === "acquired" ? { ...result, fence: shownOf(result.fence) } : result;
    },
    async read(key) {
      const record = await store.read(key);
      return record === undefined ? record : shownRecord(record);
    },
    async readReleased(key) {
      const released = await store.readReleased(key);
      return released && shownRecord(released);
    },
    list(query) {
      const listing = memory.list(query);
      const entries = listing.entries.map(({ key, record }) => ({
        key,
        record: shownRecord(record),
      }));
      return { ...listing, entries };
    },
    resolve: (key, outcome, { fence, ...given }) =>
      store.resolve(key, outcome, { ...given, fence: realOf(fence) }),
    reopen: (key, { fence, ...given }) => store.reopen(key, { ...given, fence: realOf(fence) }),
  };
}
