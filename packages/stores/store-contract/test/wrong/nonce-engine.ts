import type { WrongNonceStore } from "./wrong-nonce-store.ts";

const wasStopped = new WeakSet();

/** Wrong when the engine is full, stopped or closed. */
export const wrongNonceEngines: readonly WrongNonceStore[] = [
  {
    does: "claims after close",
    fails: "every call after close",
    wrong: ({ store, engine }) => {
      let isClosed = false;
      return {
        claim: (claim) => (isClosed && engine.isRunning ? "seen" : store.claim(claim)),
        close: () => void (isClosed = true),
      };
    },
  },
  {
    does: "makes room by the oldest nonce when it is full",
    fails: "a full store",
    wrong: ({ store, kept, nameOf }) => {
      const evicted = new Set<string>();
      return {
        claim(claim) {
          if (evicted.has(nameOf(claim))) return "fresh";
          try {
            return store.claim(claim);
          } catch (error) {
            if (kept.size >= 300) evicted.add(kept.keys().next().value ?? "");
            throw error;
          }
        },
      };
    },
  },
  {
    does: "waves a nonce through when it is full",
    fails: "a full store",
    wrong: ({ store, kept }) => ({
      claim(claim) {
        try {
          return store.claim(claim);
        } catch (error) {
          if (kept.size < 300) throw error;
          return "fresh";
        }
      },
    }),
  },
  {
    does: "waves a nonce through while the engine is stopped",
    fails: "every call while",
    wrong: ({ store, engine }) => ({ claim: (claim) => (engine.isRunning ? store.claim(claim) : "fresh") }),
  },
  {
    does: "waits for ever while the engine is stopped",
    fails: "every call while",
    wrong: ({ store, engine }) => ({
      claim: (claim) => (engine.isRunning ? store.claim(claim) : new Promise(() => {})),
    }),
  },
  {
    does: "does not find the engine again",
    fails: "after the engine is back the",
    wrong: ({ store, engine }) => ({
      claim(claim) {
        if (wasStopped.has(engine)) throw new Error("not connected");
        return store.claim(claim);
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
    does: "forgets its nonces with the engine",
    fails: "after the engine is back it",
    engine: ({ engine, kept }) => ({
      stop() {
        engine.isRunning = false;
        kept.clear();
      },
    }),
  },
];
