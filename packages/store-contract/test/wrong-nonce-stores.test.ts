import { nonceStoreContract } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { createNoncePlatform, nonceHarnessOf } from "./nonce-platform.ts";
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

async function failuresOf(store: Partial<WrongNonceStore>): Promise<Record<string, string>> {
  const failures: Record<string, string> = {};
  for (const { name, run } of casesOf(store)) {
    await run().catch((error: Error) => {
      failures[name] = error.message;
    });
  }
  return failures;
}

test("a correct nonce store passes every case", async () => {
  expect(await failuresOf({})).toEqual({});
});

describe("the cases notice a nonce store that", () => {
  test.each(wrongStores)("$does", async (store) => {
    const failures = await failuresOf(store);
    expect(new Set(Object.keys(failures))).toEqual(new Set(store.fails));
  });
});

test("every case is failed by one of these nonce stores", () => {
  const failed = new Set(wrongStores.flatMap(({ fails }) => fails));
  const never = casesOf({}).filter(({ name }) => !failed.has(name));
  expect(never.map(({ name }) => name)).toEqual([]);
});
