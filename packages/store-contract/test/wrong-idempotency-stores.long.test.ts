// All named cases on each wrong store: those that must notice do, and no others; and what a right store may do that ours do not.
import { describe, expect, test } from "@jest/globals";
import { failuresOf } from "./wrong/failures.ts";
import { countingFences } from "./wrong/fences.ts";
import { sparsePages } from "./wrong/listings.ts";
import { casesOf, isOfModel, wrongStores } from "./wrong/wrong-stores.ts";

describe("a correct store passes every case", () => {
  test.each([
    ["with one fence for all keys", {}],
    ["with fences of each key", { wrong: countingFences() }],
    ["with a page that has none of its keys", { wrong: sparsePages }],
  ])("%s", async (_name, store) => {
    expect(await failuresOf(casesOf(store))).toEqual({});
  });
});

describe("the cases notice a store that", () => {
  test.each(wrongStores)("$does", async (store) => {
    const { fails = [] } = store;
    const named = casesOf(store).filter((one) => !isOfModel(one));
    const failures = Object.keys(await failuresOf(named));
    expect(failures.filter((name) => !fails.some((begin) => name.startsWith(begin)))).toEqual([]);
    expect(failures).toHaveLength(fails.length);
  });
});
