import assert from "node:assert/strict";
import type { NonceClaim } from "@countersign/core";
import { hostileTexts, mistakable, oversized } from "../hostile-texts.ts";
import { inTurn } from "../in-turn.ts";
import type { NonceCase } from "../contract.ts";
import { useBy } from "../uses.ts";
import { outcomeOf } from "../waiting.ts";

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

/** Scopes, nonces and tokens are kept as they were given. */
export const nonceTextCases: readonly NonceCase[] = [
  {
    name: "the same nonce of another scope is another nonce, wherever the two are cut",
    async check({ store }) {
      const uses = cuts.map(([scope, nonce]) => ({ scope, nonce }));
      await assertApart(uses, (use) => store.claim(use));
    },
  },
  {
    name: "hostile scopes are all taken, and kept apart",
    async check({ store }) {
      await assertApart(
        hostileTexts.map((scope) => ({ scope })),
        (use) => store.claim(use),
      );
    },
  },
  {
    name: "hostile nonces are all taken, and kept apart",
    async check({ store }) {
      await assertApart(
        hostileNonces.map((nonce) => ({ nonce })),
        (use) => store.claim(use),
      );
    },
  },
  {
    name: "the token of a nonce is compared as it was given: what looks like it is a stranger's",
    async check({ store }) {
      await inTurn(mistakable.entries(), async ([index, [token, other]]) => {
        const nonce = `nonce-${index}`;
        assert.equal(await store.claim(useBy(token, { nonce })), "fresh", "a nonce must be fresh once");
        const rule = `the token ${JSON.stringify(other).slice(0, 60)} must not stand for another`;
        assert.equal(await store.claim(useBy(other, { nonce })), "seen", rule);
        assert.equal(
          await store.claim(useBy(token, { nonce })),
          "fresh",
          "its own token must be known again",
        );
      });
    },
  },
  {
    name: "a scope or a token of 10 kB is taken as it is or refused, never cut",
    async check({ store }) {
      const [first, second] = oversized;
      const scopes = await outcomeOf(() => store.claim(useBy("a", { scope: first })));
      if (scopes.error === undefined) {
        const other = await store.claim(useBy("b", { scope: second }));
        assert.equal(other, "fresh", "a long scope must not be cut");
        assert.equal(
          await store.claim(useBy("b", { scope: first })),
          "seen",
          "a long scope must be remembered",
        );
      }
      const tokens = await outcomeOf(() => store.claim(useBy(first)));
      if (tokens.error === undefined) {
        assert.equal(await store.claim(useBy(second)), "seen", "a long token must not be cut");
      }
    },
  },
];

type Use = Partial<Pick<NonceClaim, "scope" | "nonce">>;

/** Checks that each use is fresh although the others were used, and seen after it. */
async function assertApart(uses: readonly Use[], claim: (use: NonceClaim) => unknown): Promise<void> {
  // Tokens of their own: the same token again would be fresh for being a repetition.
  await inTurn(uses.entries(), async ([index, use]) => {
    const rule = `${JSON.stringify(use).slice(0, 80)} must be a nonce of its own`;
    assert.equal(await claim(useBy(`first-${index}`, use)), "fresh", rule);
  });
  await inTurn(uses.entries(), async ([index, use]) => {
    const rule = `${JSON.stringify(use).slice(0, 80)} must be remembered`;
    assert.equal(await claim(useBy(`replay-${index}`, use)), "seen", rule);
  });
}
