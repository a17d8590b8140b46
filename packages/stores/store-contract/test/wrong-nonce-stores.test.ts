import { nonceStoreContract } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { createNoncePlatform, nonceHarnessOf } from "./nonce-platform.ts";
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

describe("the cases notice a nonce store that", () => {
  test.each(wrongStores)("$does", async (store) => {
    const meant = casesOf(store).filter(({ name }) => name.startsWith(store.fails));
    expect(meant).toHaveLength(1);
    expect(Object.keys(await failuresOf(meant))).toEqual(meant.map(({ name }) => name));
  });
});

test("every case is failed by one of these nonce stores", () => {
  const never = casesOf({}).filter(({ name }) => !wrongStores.some(({ fails }) => name.startsWith(fails)));
  expect(never.map(({ name }) => name)).toEqual([]);
});
