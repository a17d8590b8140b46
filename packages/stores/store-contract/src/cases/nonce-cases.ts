import assert from "node:assert/strict";
import type { NonceClaim, NonceStore } from "@countersign/core";
import { type CaseDefinition, rules } from "../contract.ts";
import type { ContractNonceStore, NonceStoreHarness } from "../harness.ts";
import { hostileTexts, mistakable, oversized, shown } from "../hostile-texts.ts";
import { withProcessClock } from "../process-clock.ts";
import { handlesOf, inTurn, outcomeOf, pass } from "../waiting.ts";
import { type Call, engineCases } from "./engine-cases.ts";

type NonceCase = CaseDefinition<NonceStoreHarness>;

const nonceRules = rules<NonceStoreHarness>;

/** A claim of the one nonce by the request of this token, and its answer; or milliseconds that pass exactly; or a pruning. */
type Event = readonly [token: string, answer: "fresh" | "seen", retainMs?: number] | number | "prune";

// No case outlives it.
const longRetainMs = 60_000;

/** A retention that a case waits for. No case needs an answer within it. */
const shortRetainMs = 100;

const racers = 40;

const tenMinutesMs = 600_000;

function useBy(token: string, overrides: Partial<NonceClaim> = {}): NonceClaim {
  const nonce = "0b7d1b5e-6d5c-4a2c-9d7e-6a7c1f1f9b11";
  return { scope: "key-1", nonce, token, retainMs: longRetainMs, ...overrides };
}

/** What comes one after the other on one nonce, by the name of the case. */
const sequences: Readonly<Record<string, readonly Event[]>> = {
  "a nonce is seen in the last second and in the last millisecond of its retention, pruned or not": [
    ["a", "fresh", 120_000],
    ...[119_001, 998, 1].flatMap((ms): Event[] => [ms, ["b", "seen"], "prune", ["b", "seen"]]),
  ],
  "a nonce is fresh again one millisecond after its retention, and the first to use it has it": [
    ["a", "fresh", 1_000],
    1_001,
    ["b", "fresh"],
    ["a", "seen"],
  ],
  "a replay does not move the end of the retention": [
    ["a", "fresh", 1_000],
    ["b", "seen", 10],
    1_000,
    ["b", "seen", 1_000_000],
    1,
    ["c", "fresh"],
  ],
};

export const nonceCases: readonly NonceCase[] = [
  ...nonceRules([], {
    "a nonce is fresh to the request that used it first, also when it comes again, and seen to every other": (
      harness,
    ) =>
      play(harness, [
        ["a", "fresh"],
        ["a", "fresh"],
        ["b", "seen"],
        ["c", "seen"],
        ["a", "fresh"],
        ["b", "seen"],
      ]),
    async "of many concurrent claims of a nonce exactly one is fresh, also when its retention has ended"(
      harness,
    ) {
      await race([harness.store]);
      await harness.store.claim(useBy("a", { nonce: "ended", retainMs: shortRetainMs }));
      await pass(harness, shortRetainMs);
      await race([harness.store], ["ended"]);
    },
    async "concurrent repetitions of one claim of a nonce are all fresh"({ store }) {
      const answers = await Promise.all(Array.from({ length: racers }, async () => store.claim(useBy("a"))));
      assert.deepEqual(new Set(answers), new Set(["fresh"]), "each repetition must be fresh");
    },
    async "a repeated claim never shortens the retention"(harness) {
      const { store } = harness;
      await store.claim(useBy("a"));
      await store.claim(useBy("a", { retainMs: shortRetainMs }));
      await pass(harness, shortRetainMs);
      assert.equal(await store.claim(useBy("b")), "seen", "the longer of the two retentions must hold");
    },
    async "retentions are measured by the store's clock, whatever the process thinks of the time"(harness) {
      const { store } = harness;
      await store.claim(useBy("a"));
      const ahead = await withProcessClock(tenMinutesMs, async () => {
        await store.claim(useBy("a", { nonce: "fast", retainMs: shortRetainMs }));
        return store.claim(useBy("b"));
      });
      assert.equal(ahead, "seen", "a live nonce must not end by the clock of a process");
      await pass(harness, shortRetainMs);
      const fast = await store.claim(useBy("b", { nonce: "fast" }));
      assert.equal(fast, "fresh", "a retention must not be lengthened by the clock of a process");
      await withProcessClock(-tenMinutesMs, () => store.claim(useBy("a", { nonce: "slow" })));
      const slow = await store.claim(useBy("b", { nonce: "slow" }));
      assert.equal(slow, "seen", "a retention must not be shortened by the clock of a process");
    },
  }),
  ...nonceRules(["another"], {
    async "of many concurrent claims of a nonce through several handles exactly one is fresh"(harness) {
      await race(await handlesOf(harness));
    },
  }),
  ...nonceRules(["prune"], {
    async "pruning removes the nonces whose retention has ended, and no others"(harness) {
      const { store } = harness;
      await store.claim(useBy("a", { nonce: "short", retainMs: shortRetainMs }));
      await store.claim(useBy("a"));
      await pass(harness, shortRetainMs);
      const removed = await store.prune?.();
      // Where the engine removes by itself what has ended, nothing is left to be counted.
      assert.ok(removed === 0 || removed === 1, `one nonce has ended, ${removed} were counted`);
      assert.equal(await store.prune?.(), 0, "nothing must be removed twice");
      assert.equal(await store.claim(useBy("b")), "seen", "a live nonce must stay");
      assert.equal(await store.claim(useBy("b", { nonce: "short" })), "fresh", "the other must have ended");
    },
  }),
  ...Object.entries(sequences).map(([name, events]): NonceCase => ({
    name,
    needs: ["clock"],
    check: (harness) => play(harness, events),
  })),
  ...engineCases<ContractNonceStore>({
    begin: async (store) => void (await store.claim(useBy("a"))),
    look: async (store) => store.claim(useBy("b")),
    async assertKept(store) {
      const { value } = await outcomeOf(() => store.claim(useBy("b")));
      assert.notEqual(value, "fresh", "a nonce that is alive must not be evicted");
    },
    add: (store) => store.claim(useBy("a", { nonce: "one more" })),
    async assertAdded(store) {
      assert.equal(await store.claim(useBy("b", { nonce: "one more" })), "seen", "a used nonce must be seen");
    },
    calls: callsOf,
  }),
];

function callsOf(store: ContractNonceStore): readonly Call[] {
  const calls: Call[] = [["claim", () => store.claim(useBy("b"))]];
  if (store.prune !== undefined) calls.push(["prune", () => store.prune?.()]);
  return calls;
}

async function play(harness: NonceStoreHarness, events: readonly Event[]): Promise<void> {
  const { store } = harness;
  await inTurn(events.entries(), async ([index, event]) => {
    if (typeof event === "number") await harness.advance?.(event);
    else if (event === "prune") await store.prune?.();
    else {
      const [token, answer, retainMs = longRetainMs] = event;
      const rule = `step ${index + 1}, the claim by ${token}, must be ${answer}`;
      assert.equal(await store.claim(useBy(token, { retainMs })), answer, rule);
    }
  });
}

async function race(
  stores: readonly NonceStore[],
  nonces: readonly string[] = ["nonce-1", "nonce-2", "nonce-3", "nonce-4", "nonce-5"],
): Promise<void> {
  await inTurn(nonces, async (nonce) => {
    const claims = stores.flatMap((store, handle) =>
      Array.from({ length: Math.ceil(racers / stores.length) }, async (_, index) =>
        store.claim(useBy(`${handle}-${index}`, { nonce })),
      ),
    );
    const answers = await Promise.all(claims);
    const fresh = answers.filter((answer) => answer === "fresh").length;
    assert.equal(fresh, 1, `exactly one claim must be fresh, got ${fresh}`);
    const isKnown = answers.every((answer) => answer === "fresh" || answer === "seen");
    assert.ok(isKnown, "each other claim must be seen");
  });
}

// A nonce is printable ASCII, of 1 to 128 characters.
const hostileNonces = [
  ...hostileTexts.filter((text) => /^[ -~]+$/.test(text) && text.length <= 128),
  `${"x".repeat(127)}a`,
  `${"x".repeat(127)}b`,
];

// Where one ends and the other begins must not be lost in a composed name.
const cuts: readonly (readonly [scope: string, nonce: string])[] = [
  ["key-1", "0nonce"],
  ["key-10", "nonce"],
  ["key-1:", "nonce"],
  ["key-1", ":nonce"],
  ["a:b", "c"],
  ["a", "b:c"],
  ["a", "b"],
  ["b", "a"],
  ["a\0", "b"],
  ["1:a", "b"],
  ["a/b", "c"],
  ["a", "b/c"],
  ["{a}", "b"],
  ["{a", "}b"],
];

const uses: readonly { readonly scope?: string; readonly nonce?: string }[] = [
  ...cuts.map(([scope, nonce]) => ({ scope, nonce })),
  ...hostileTexts.map((scope) => ({ scope })),
  ...hostileNonces.map((nonce) => ({ nonce })),
];

export const nonceTextCases = nonceRules([], {
  async "hostile scopes and nonces are all taken, and kept apart, wherever the two are cut"({ store }) {
    // Tokens of their own: the same token again would be fresh for being a repetition.
    await inTurn(uses.entries(), async ([index, use]) => {
      const rule = `${shown(use)} must be a nonce of its own`;
      assert.equal(await store.claim(useBy(`first-${index}`, use)), "fresh", rule);
    });
    await inTurn(uses.entries(), async ([index, use]) => {
      const rule = `${shown(use)} must be remembered`;
      assert.equal(await store.claim(useBy(`replay-${index}`, use)), "seen", rule);
    });
  },
  async "the token of a nonce is compared as it was given: what looks like it is a stranger's"({ store }) {
    await inTurn(mistakable.entries(), async ([index, [token, other]]) => {
      const nonce = `nonce-${index}`;
      assert.equal(await store.claim(useBy(token, { nonce })), "fresh", "a nonce must be fresh once");
      const rule = `the token ${shown(other)} must not stand for another`;
      assert.equal(await store.claim(useBy(other, { nonce })), "seen", rule);
      assert.equal(await store.claim(useBy(token, { nonce })), "fresh", "its own token must be known again");
    });
  },
  async "a scope or a token of 10 kB is taken as it is or refused, never cut"({ store }) {
    const [first, second] = oversized;
    const scopes = await outcomeOf(() => store.claim(useBy("a", { scope: first })));
    if (scopes.error === undefined) {
      const [other, again] = [useBy("b", { scope: second }), useBy("b", { scope: first })];
      assert.equal(await store.claim(other), "fresh", "a long scope must not be cut");
      assert.equal(await store.claim(again), "seen", "a long scope must be remembered");
    }
    const tokens = await outcomeOf(() => store.claim(useBy(first)));
    if (tokens.error === undefined) {
      assert.equal(await store.claim(useBy(second)), "seen", "a long token must not be cut");
    }
  },
});
