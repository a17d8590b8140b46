import { type WrongStore, decide } from "./wrong-store.ts";

/** Wrong when the engine is full, stopped or closed. */
export const wrongEngines: readonly WrongStore[] = [
  {
    does: "answers a heartbeat after close",
    fails: "every call after",
    wrong: ({ store }) => ({
      heartbeat(key, token, leaseMs) {
        try {
          return store.heartbeat(key, token, leaseMs);
        } catch {
          return "lost";
        }
      },
    }),
  },
  {
    does: "makes room by the oldest done key when it is full",
    fails: "a full store",
    wrong: ({ store, memory }) => {
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
  },
  {
    does: "waves a claim through when it is full",
    fails: "a full store",
    wrong: ({ store, memory }) => ({
      claim(key, claim) {
        try {
          return store.claim(key, claim);
        } catch {
          // A closed one still throws.
          memory.read(key);
          return { status: "acquired", fence: 1_000_000 };
        }
      },
    }),
  },
  {
    does: "reads every key as absent while the engine is stopped",
    fails: "every call while",
    ignores: "a stopped engine",
    wrong: ({ store, engine }) => ({ read: (key) => (engine.isRunning ? store.read(key) : undefined) }),
  },
  {
    does: "waits for ever while the engine is stopped",
    fails: "every call while",
    ignores: "a stopped engine",
    wrong: ({ store, engine }) => ({
      claim: (key, claim) => (engine.isRunning ? store.claim(key, claim) : new Promise(() => {})),
    }),
  },
  {
    does: "does not find the engine again",
    fails: "after the engine is back the",
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
    engine: ({ engine }) => ({
      stop() {
        engine.isRunning = false;
        wasStopped.add(engine);
      },
    }),
  },
  {
    does: "forgets held keys with the engine",
    fails: "after the engine is back it",
    engine: ({ engine, memory }) => ({
      stop() {
        engine.isRunning = false;
        for (const { key } of memory.list({ state: "held", limit: 1_000 }).entries) {
          decide({ memory }, key, "released");
        }
      },
    }),
  },
];

const wasStopped = new WeakSet();
