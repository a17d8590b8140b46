import assert from "node:assert/strict";
import type { NonceStore } from "@countersign/core";
import { inTurn } from "../in-turn.ts";
import type { NonceCase } from "../contract.ts";
import { useBy } from "../uses.ts";
import { anotherOf } from "../waiting.ts";

const racers = 40;
const rounds = ["nonce-1", "nonce-2", "nonce-3", "nonce-4", "nonce-5"];

/** One use of a nonce, and no second one. */
export const nonceClaimCases: readonly NonceCase[] = [
  {
    name: "a nonce is fresh to its first claim and seen to every other",
    async check({ store }) {
      assert.equal(await store.claim(useBy("a")), "fresh", "a nonce that was never used must be fresh");
      assert.equal(await store.claim(useBy("b")), "seen", "a nonce that was used must be seen");
      assert.equal(await store.claim(useBy("c")), "seen", "a nonce that was used must stay seen");
    },
  },
  {
    name: "a claim repeated with its token, after a lost reply, is fresh again",
    async check({ store }) {
      await store.claim(useBy("a"));
      assert.equal(await store.claim(useBy("a")), "fresh", "a request must never see itself as a replay");
      await store.claim(useBy("b"));
      assert.equal(await store.claim(useBy("a")), "fresh", "a replay in between must change nothing");
      assert.equal(await store.claim(useBy("b")), "seen", "the replay must stay one");
    },
  },
  {
    name: "of many concurrent claims of a nonce exactly one is fresh",
    async check({ store }) {
      await inTurn(rounds, (nonce) => race([store], nonce));
    },
  },
  {
    name: "of many concurrent claims of a nonce through several handles exactly one is fresh",
    needs: ["another"],
    async check(harness) {
      const others = await Promise.all([anotherOf(harness), anotherOf(harness), anotherOf(harness)]);
      await inTurn(rounds, (nonce) => race([harness.store, ...others], nonce));
    },
  },
  {
    name: "concurrent repetitions of one claim of a nonce are all fresh",
    async check({ store }) {
      const answers = await Promise.all(Array.from({ length: racers }, async () => store.claim(useBy("a"))));
      assert.deepEqual(new Set(answers), new Set(["fresh"]), "each repetition must be fresh");
    },
  },
];

async function race(stores: readonly NonceStore[], nonce: string): Promise<void> {
  const answers = await Promise.all(
    stores.flatMap((store, handle) =>
      Array.from({ length: Math.ceil(racers / stores.length) }, async (_, index) =>
        store.claim(useBy(`${handle}-${index}`, { nonce })),
      ),
    ),
  );
  const fresh = answers.filter((answer) => answer === "fresh").length;
  assert.equal(fresh, 1, `exactly one claim must be fresh, got ${fresh}`);
  assert.ok(
    answers.every((answer) => answer === "fresh" || answer === "seen"),
    "each other claim must be seen",
  );
}
