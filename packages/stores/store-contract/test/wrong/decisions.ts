import { leaseExpired } from "@countersign/idempotency/store";
import { type WrongStore, decide, ownerOf, runOf, stateOf } from "./wrong-store.ts";

type Fit = readonly [string, (given: number, own: number) => boolean];

/** Wrong about whose key is resolved: about the fence of a decision, and about the token that it leaves behind. */
export const wrongDecisions: readonly WrongStore[] = [
  ...(
    [
      ["below", (given, own) => given >= own],
      ["above", (given, own) => given > 0 && given <= own],
    ] as const satisfies readonly Fit[]
  ).map(([than, fits]): WrongStore => ({
    does: `resolves by any fence that is not ${than} the attempt's`,
    wrong: (platform) => ({
      resolve: (key, outcome, decision) =>
        fits(decision.fence, platform.memory.read(key)?.fence ?? Number.NaN)
          ? decide(platform, key, outcome, decision)
          : platform.store.resolve(key, outcome, decision),
    }),
  })),
  {
    does: "ends a live run by a decision about an earlier attempt, which it calls not held",
    wrong: (platform) => ({
      async resolve(key, outcome, decision) {
        const run = runOf(platform, key);
        const answer = await platform.store.resolve(key, outcome, decision);
        const isLater = run !== undefined && decision.fence > 0 && decision.fence < run.fence;
        if (isLater && run.remainingMs > 0) platform.memory.release(key, run.token);
        return answer;
      },
    }),
  },
  {
    does: "completes a key that an operator resolved for its old owner",
    fails: "of two steps at once on a held",
    wrong: (platform) => {
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
  {
    does: "leaves the same token behind at each decision",
    wrong: (platform) => {
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
  },
  {
    does: "resolves a live run",
    fails: "leases are measured",
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
    does: "makes done whatever the operator decided",
    fails: "hostile tokens, fingerprints,",
    wrong: ({ store }) => ({ resolve: (key, _outcome, decision) => store.resolve(key, "done", decision) }),
  },
];
