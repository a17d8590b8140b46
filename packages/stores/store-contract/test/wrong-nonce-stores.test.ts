import { nonceStoreContract } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { createNoncePlatform, nonceHarnessOf } from "./nonce-platform.ts";
import { failuresOf } from "./wrong/failures.ts";
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
    const failures = await failuresOf(casesOf(store));
    expect(new Set(Object.keys(failures))).toEqual(new Set(store.fails));
  });
});

test("every case is failed by one of these nonce stores", () => {
  const failed = new Set(wrongStores.flatMap(({ fails }) => fails));
  const never = casesOf({}).filter(({ name }) => !failed.has(name));
  expect(never.map(({ name }) => name)).toEqual([]);
});
