import { nonceStoreContract } from "@countersign/store-contract";
import { expect, test } from "@jest/globals";
import { createNoncePlatform, nonceHarnessOf } from "./nonce-platform.ts";
import { testWrongStores } from "./wrong/noticed.ts";
import { failuresOf } from "./wrong/wrong-store.ts";
import { wrongNonceClaims } from "./wrong/nonce-claims.ts";
import { wrongNonceEngines } from "./wrong/nonce-engine.ts";
import { wrongNonceRetention } from "./wrong/nonce-retention.ts";
import { wrongNonceTexts } from "./wrong/nonce-texts.ts";
import type { WrongNonceStore } from "./wrong/wrong-nonce-store.ts";

const wrongStores = [...wrongNonceClaims, ...wrongNonceRetention, ...wrongNonceTexts, ...wrongNonceEngines];

function casesOf({ wrong, engine, platform }: Partial<WrongNonceStore>) {
  return nonceStoreContract(() => {
    const made = createNoncePlatform(platform);
    return nonceHarnessOf(made, () => ({ ...made.store, ...wrong?.(made) }), engine?.(made));
  });
}

test("a correct nonce store passes every case", async () => {
  expect(await failuresOf(casesOf({}))).toEqual({});
});

testWrongStores(wrongStores, (store) => casesOf(store ?? {}));
