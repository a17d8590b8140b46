import type { ContractCase } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { failuresOf } from "./wrong/wrong-store.ts";
import { countingFences } from "./wrong/fences.ts";
import { sparsePages } from "./wrong/listings.ts";
import { casesOf, usesReference, wrongStores } from "./wrong/wrong-stores.ts";

describe("the cases notice a store that", () => {
  test.each(wrongStores)("$does", async (store) => {
    const { fails } = store;
    const cases = casesOf(store);
    if (fails === undefined) {
      expect(await isNoticed(cases.filter(usesReference))).toBe(true);
    } else {
      const meant = cases.filter(({ name }) => name.startsWith(fails));
      expect(meant).toHaveLength(1);
      expect(Object.keys(await failuresOf(meant))).toEqual(meant.map(({ name }) => name));
    }
  });
});

test.each([
  ["with one fence for all keys", {}],
  ["with fences of each key", { wrong: countingFences() }],
  ["with a page that has none of its keys", { wrong: sparsePages }],
])("a correct store passes every case: %s", async (_name, store) => {
  expect(await failuresOf(casesOf(store))).toEqual({});
});

test("every case is failed by one of these stores", () => {
  const never = casesOf({}).filter(
    ({ name }) => !wrongStores.some(({ fails = "whatever" }) => name.startsWith(fails)),
  );
  expect(never.map(({ name }) => name)).toEqual([]);
});

async function isNoticed(cases: readonly ContractCase[]): Promise<boolean> {
  for (const { run } of cases) {
    try {
      await run();
    } catch {
      return true;
    }
  }
  return false;
}
