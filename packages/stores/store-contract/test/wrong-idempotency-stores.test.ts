import { expect, test } from "@jest/globals";
import { countingFences } from "./wrong/fences.ts";
import { sparsePages } from "./wrong/listings.ts";
import { neverFailed, testNoticed } from "./wrong/noticed.ts";
import { failuresOf } from "./wrong/wrong-store.ts";
import { casesOf, wrongStores } from "./wrong/wrong-stores.ts";

// A fifth, from all kinds. The long tests have all of them.
testNoticed(wrongStores.filter((_store, index) => index % 5 === 0));

test.each([
  ["with one fence for all keys", {}],
  ["with fences of each key", { wrong: countingFences() }],
  ["with a page that has none of its keys", { wrong: sparsePages }],
])("a correct store passes every case: %s", async (_name, store) => {
  expect(await failuresOf(casesOf(store))).toEqual({});
});

test("every case is failed by one of these stores", () => {
  expect(neverFailed([...wrongStores, { fails: "whatever" }], casesOf({}))).toEqual([]);
});
