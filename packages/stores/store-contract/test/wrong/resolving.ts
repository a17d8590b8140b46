import { leaseExpired } from "@countersign/idempotency";
import { type WrongStore, runOf, stateOf } from "./wrong-store.ts";

/** Wrong at an operator's decision. */
export const wrongResolving: readonly WrongStore[] = [
  {
    does: "resolves a live run",
    fails: [
      "resolve has nothing to decide on a live run, a done key and an absent one",
      "leases are measured by the store's clock, whatever the process thinks of the time",
    ],
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
    fails: [
      "resolve has nothing to decide on a live run, a done key and an absent one",
      "resolve as done makes a held key done, once, with the fence and the fingerprint of its attempt",
    ],
    wrong: (platform) => ({
      resolve: (key, outcome, decision) =>
        stateOf(platform, key) === "done" ? "ok" : platform.store.resolve(key, outcome, decision),
    }),
  },
  {
    does: "releases whatever the operator decided",
    fails: [
      "resolve as done makes a held key done, once, with the fence and the fingerprint of its attempt",
      "resolve decides on a run whose lease has expired",
      "a key that an operator resolved as done is remembered as long as any other",
      "a decision is kept: its outcome, its fence, by whom, why, when, and the hold's own reason",
      "a decision stays on the record of the next attempt, whatever that does",
      "list gives the decisions that are read",
    ],
    wrong: ({ store }) => ({
      resolve: (key, _outcome, decision) => store.resolve(key, "released", decision),
    }),
  },
  {
    does: "makes done whatever the operator decided",
    fails: [
      "resolve as released makes a held key absent, once, and its late owner has lost it",
      "resolve decides on a run whose lease has expired",
      "the fence grows over a key that an operator released",
      "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
      "the fence grows when the clock was set back, over a release, a takeover and a decision",
      "every step finds a hostile key, and ends it",
      "a decision is kept: its outcome, its fence, by whom, why, when, and the hold's own reason",
      "hostile names, notes and reasons of a decision are given back unchanged",
      "a decision stays on the record of the next attempt, whatever that does",
      "a decision is kept as long as a done key is remembered, pruned or not, and no longer",
      "reopen never takes back what an attempt has ended itself",
      "reopen leaves a released key to the attempt that has claimed it since, by whichever fence",
      "a reopening does not bring the old owner back, nor whatever token was read meanwhile",
      "the fence grows over a reopening",
      "of a reopening and a claim at once one comes first, and the other one sees it",
      "list gives the decisions that are read",
    ],
    wrong: ({ store }) => ({ resolve: (key, _outcome, decision) => store.resolve(key, "done", decision) }),
  },
  {
    does: "does not resolve a run whose lease has expired",
    fails: [
      "resolve decides on a run whose lease has expired",
      "resolve takes the key from its owner, who has lost it, whatever it tries when it wakes up",
      "resolve with any other fence than the attempt's decides nothing",
      "a key that an operator resolved as done is remembered as long as any other",
      "completeIn is lost to an owner whose key an operator has resolved, so that its payment is rolled back",
      "a decision about an expired run keeps the reason of one",
    ],
    wrong: (platform) => ({
      resolve: (key, outcome, decision) =>
        stateOf(platform, key) === "run" ? "not-held" : platform.store.resolve(key, outcome, decision),
    }),
  },
];
