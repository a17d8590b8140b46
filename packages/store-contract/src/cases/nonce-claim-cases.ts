import assert from "node:assert/strict";
import type { NonceCase } from "../nonce-contract.ts";
import { useBy } from "../uses.ts";

/** One use of a nonce, and no second one. */
export const nonceClaimCases: readonly NonceCase[] = [
  {
    name: "a nonce is fresh to its first claim and seen to every other",
    needs: [],
    async check({ store }) {
      assert.equal(await store.claim(useBy("a")), "fresh", "a nonce that was never used must be fresh");
      assert.equal(await store.claim(useBy("b")), "seen", "a nonce that was used must be seen");
      assert.equal(await store.claim(useBy("c")), "seen", "a nonce that was used must stay seen");
    },
  },
];
