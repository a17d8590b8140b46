import { leaseExpired } from "@countersign/idempotency/store";
import { type WrongStore, runOf, stateOf } from "./wrong-store.ts";

/** Wrong at an operator's decision. */
export const wrongResolving: readonly WrongStore[] = [
  {
    does: "resolves a live run",
    fails: ["leases are measured by"],
    wrong: (platform) => ({
      resolve(key, outcome, decision) {
        const run = runOf(platform, key);
        if (run?.fence === decision.fence) platform.memory.hold(key, run.token, leaseExpired);
        return platform.store.resolve(key, outcome, decision);
      },
    }),
  },
  {
    does: "resolves a done key once more",
    wrong: (platform) => ({
      resolve: (key, outcome, decision) =>
        stateOf(platform, key) === "done" ? "ok" : platform.store.resolve(key, outcome, decision),
    }),
  },
  {
    does: "releases whatever the operator decided",
    wrong: ({ store }) => ({
      resolve: (key, _outcome, decision) => store.resolve(key, "released", decision),
    }),
  },
  {
    does: "makes done whatever the operator decided",
    fails: ["every step finds a", "hostile names, notes and", "of a reopening and"],
    wrong: ({ store }) => ({ resolve: (key, _outcome, decision) => store.resolve(key, "done", decision) }),
  },
  {
    does: "does not resolve a run whose lease has expired",
    wrong: (platform) => ({
      resolve: (key, outcome, decision) =>
        stateOf(platform, key) === "run" ? "not-held" : platform.store.resolve(key, outcome, decision),
    }),
  },
];
