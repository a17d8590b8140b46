import { type WrongStore, runOf, stateOf } from "./wrong-store.ts";

/** Wrong at an operator's decision. */
export const wrongResolving: readonly WrongStore[] = [
  {
    does: "resolves a live run",
    fails: ["resolve has nothing to decide on a live run, a done key and an absent one"],
    wrong: (platform) => ({
      resolve(key, outcome) {
        const run = runOf(platform, key);
        if (run !== undefined) platform.memory.hold(key, run.token, "");
        return platform.store.resolve(key, outcome);
      },
    }),
  },
  {
    does: "resolves a done key once more",
    fails: [
      "resolve has nothing to decide on a live run, a done key and an absent one",
      "resolve as done makes a held key done, once, with what is known of its owner",
    ],
    wrong: (platform) => ({
      resolve: (key, outcome) =>
        stateOf(platform, key) === "done" ? "ok" : platform.store.resolve(key, outcome),
    }),
  },
  {
    does: "releases whatever the operator decided",
    fails: [
      "resolve as done makes a held key done, once, with what is known of its owner",
      "resolve decides on a run whose lease has expired",
      "a key that an operator resolved as done is remembered as long as any other",
    ],
    wrong: ({ store }) => ({ resolve: (key) => store.resolve(key, "released") }),
  },
  {
    does: "makes done whatever the operator decided",
    fails: [
      "resolve as released makes a held key absent, once, and its late owner has lost it",
      "resolve decides on a run whose lease has expired",
      "the fence grows over a key that an operator released",
    ],
    wrong: ({ store }) => ({ resolve: (key) => store.resolve(key, "done") }),
  },
  {
    does: "does not resolve a run whose lease has expired",
    fails: ["resolve decides on a run whose lease has expired"],
    wrong: (platform) => ({
      resolve: (key, outcome) =>
        stateOf(platform, key) === "run" ? "not-held" : platform.store.resolve(key, outcome),
    }),
  },
];
