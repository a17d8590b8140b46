import assert from "node:assert/strict";
import { hostileTexts, mistakable, oversized, shown } from "../hostile-texts.ts";
import { inTurn, outcomeOf } from "../waiting.ts";
import { type NonceCase, useBy } from "./nonce-cases.ts";

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

export const nonceTextCases: readonly NonceCase[] = [
  {
    name: "hostile scopes and nonces are all taken, and kept apart, wherever the two are cut",
    async check({ store }) {
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
  },
  {
    name: "the token of a nonce is compared as it was given: what looks like it is a stranger's",
    async check({ store }) {
      await inTurn(mistakable.entries(), async ([index, [token, other]]) => {
        const nonce = `nonce-${index}`;
        assert.equal(await store.claim(useBy(token, { nonce })), "fresh", "a nonce must be fresh once");
        const rule = `the token ${shown(other)} must not stand for another`;
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
        const [other, again] = [useBy("b", { scope: second }), useBy("b", { scope: first })];
        assert.equal(await store.claim(other), "fresh", "a long scope must not be cut");
        assert.equal(await store.claim(again), "seen", "a long scope must be remembered");
      }
      const tokens = await outcomeOf(() => store.claim(useBy(first)));
      if (tokens.error === undefined) {
        assert.equal(await store.claim(useBy(second)), "seen", "a long token must not be cut");
      }
    },
  },
];
