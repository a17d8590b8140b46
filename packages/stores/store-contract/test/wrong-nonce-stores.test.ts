import { nonceStoreContract } from "@countersign/store-contract";
import { expect, test } from "@jest/globals";
import { createNoncePlatform, nonceHarnessOf } from "./nonce-platform.ts";
import { wrongNonces } from "./wrong/wrong-nonces.ts";
import { testWrongStores } from "./wrong/noticed.ts";
import { failuresOf, listed } from "./wrong/wrong-store.ts";
import type { WrongNonceStore } from "./wrong/wrong-nonce-store.ts";

const wrongStores = listed(wrongNonces);

function casesOf(given: (typeof wrongStores)[number]["wrong"] = {}) {
  const { wrong, engine, platform }: WrongNonceStore = typeof given === "function" ? { wrong: given } : given;
  return nonceStoreContract(() => {
    const made = createNoncePlatform(platform);
    return nonceHarnessOf(made, () => ({ ...made.store, ...wrong?.(made) }), engine?.(made));
  });
}

test("a correct nonce store passes every case", async () => {
  expect(await failuresOf(casesOf())).toEqual({});
});

testWrongStores(wrongStores, casesOf);
