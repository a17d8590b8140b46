// Every rule is worth something only if a store that breaks it is noticed: each of these stores breaks one.
import { idempotencyStoreContract } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { createPlatform, harnessOf } from "./platform.ts";
import { wrongClaims } from "./wrong/claims.ts";
import { wrongClocks } from "./wrong/clocks.ts";
import { wrongDecisions } from "./wrong/decisions.ts";
import { wrongDetails } from "./wrong/details.ts";
import { wrongEffects } from "./wrong/effects.ts";
import { wrongEngines } from "./wrong/engine.ts";
import { countingFences, wrongFences } from "./wrong/fences.ts";
import { wrongLeases } from "./wrong/leases.ts";
import { sparsePages, wrongListings } from "./wrong/listings.ts";
import { wrongOnce } from "./wrong/once.ts";
import { wrongRaces } from "./wrong/races.ts";
import { wrongResolving } from "./wrong/resolving.ts";
import { wrongRetention } from "./wrong/retention.ts";
import { wrongSettling } from "./wrong/settling.ts";
import { wrongTexts } from "./wrong/texts.ts";
import { wrongTransactions } from "./wrong/transactions.ts";
import { type WrongStore, wrongStoreOn } from "./wrong/wrong-store.ts";

const wrongStores = [
  ...wrongClaims,
  ...wrongRaces,
  ...wrongLeases,
  ...wrongClocks,
  ...wrongSettling,
  ...wrongResolving,
  ...wrongDecisions,
  ...wrongFences,
  ...wrongRetention,
  ...wrongDetails,
  ...wrongEffects,
  ...wrongTexts,
  ...wrongEngines,
  ...wrongTransactions,
  ...wrongOnce,
  ...wrongListings,
];

function casesOf(store: Partial<WrongStore>) {
  return idempotencyStoreContract(() => {
    const platform = createPlatform(store.platform);
    return harnessOf(platform, () => wrongStoreOn(platform, store), store.engine?.(platform));
  });
}

async function failuresOf(store: Partial<WrongStore>): Promise<Record<string, string>> {
  const failures: Record<string, string> = {};
  for (const { name, run } of casesOf(store)) {
    await run().catch((error: Error) => {
      failures[name] = error.message;
    });
  }
  return failures;
}

describe("a correct store passes every case", () => {
  test.each([
    ["with one fence for all keys", {}],
    ["with fences of each key", { wrong: countingFences() }],
    ["with a page that has none of its keys", { wrong: sparsePages }],
  ])("%s", async (_name, store) => {
    expect(await failuresOf(store)).toEqual({});
  });
});

describe("the cases notice a store that", () => {
  test.each(wrongStores)("$does", async (store) => {
    const failures = await failuresOf(store);
    expect(new Set(Object.keys(failures))).toEqual(new Set(store.fails));
  });
});

test("every case is failed by one of these stores", () => {
  const failed = new Set(wrongStores.flatMap(({ fails }) => fails));
  const never = casesOf({}).filter(({ name }) => !failed.has(name));
  expect(never.map(({ name }) => name)).toEqual([]);
});
