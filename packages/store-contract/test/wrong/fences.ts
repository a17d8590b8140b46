import type { Platform, Store } from "../platform.ts";
import type { WrongStore } from "./wrong-store.ts";

type Event =
  | "takeover"
  | "release"
  | "resolve"
  | "end of retention"
  | "pruning of done"
  | "pruning of released";

/** A store that counts the fences of each key on its own, and begins again after the event. */
export function countingFences(forgetsAt?: Event): (platform: Platform) => Partial<Store> {
  return (platform) => {
    const { store, memory } = platform;
    const counts = new Map<string, { real: number; shown: number; isFree: boolean }>();
    const shownOf = (key: string, real: number): number => {
      const count = counts.get(key) ?? { real: -1, shown: 0, isFree: false };
      if (count.real !== real) counts.set(key, { real, shown: count.shown + 1, isFree: false });
      return counts.get(key)?.shown ?? 0;
    };
    const free = (key: string, forgets: boolean): void => {
      const count = counts.get(key);
      if (count === undefined) return;
      counts.set(key, { ...count, isFree: true, shown: forgets ? 0 : count.shown });
    };
    return {
      async claim(key, claim) {
        const before = memory.read(key);
        const count = counts.get(key);
        if (before === undefined && count !== undefined && !count.isFree)
          free(key, forgetsAt === "end of retention");
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
        return record === undefined ? record : { ...record, fence: shownOf(key, record.fence) };
      },
      list(query) {
        const listing = memory.list(query);
        const shown = ({ key, record }: (typeof listing.entries)[number]) => ({
          key,
          record: { ...record, fence: shownOf(key, record.fence) },
        });
        return { ...listing, entries: listing.entries.map(shown) };
      },
      async release(key, token) {
        const answer = await store.release(key, token);
        if (answer === "ok") free(key, forgetsAt === "release");
        return answer;
      },
      async resolve(key, outcome) {
        const answer = await store.resolve(key, outcome);
        if (answer === "ok" && outcome === "released") free(key, forgetsAt === "resolve");
        return answer;
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
    fails: ["the fence grows when an expired run is taken over"],
    wrong: countingFences("takeover"),
  },
  {
    does: "counts fences anew after a release",
    fails: [
      "the fence grows over a release, also for the same token",
      "the fence grows over a release that was long ago, and pruning",
      "after the engine is back it has everything that was answered before",
    ],
    wrong: countingFences("release"),
  },
  {
    does: "counts fences anew after an operator's release",
    fails: ["the fence grows over a key that an operator released"],
    wrong: countingFences("resolve"),
  },
  {
    does: "counts fences anew after the retention",
    fails: ["the fence grows over the end of the retention of a done key"],
    wrong: countingFences("end of retention"),
  },
  {
    does: "counts fences anew after a done key was pruned",
    fails: ["the fence grows over the pruning of a done key"],
    wrong: countingFences("pruning of done"),
  },
  {
    does: "counts fences anew after a released key was pruned",
    fails: ["the fence grows over a release that was long ago, and pruning"],
    wrong: countingFences("pruning of released"),
  },
];
