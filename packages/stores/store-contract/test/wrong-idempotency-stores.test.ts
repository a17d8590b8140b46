import { expect, test } from "@jest/globals";
import { countingFences } from "./wrong/engine.ts";
import { sparsePages } from "./wrong/texts.ts";
import { neverFailed, testNoticed } from "./wrong/noticed.ts";
import { failuresOf } from "./wrong/wrong-store.ts";
import { casesOf, wrongStores } from "./wrong/wrong-stores.ts";

// A fifth, from all kinds. The long tests have all of them.
testNoticed(wrongStores.filter((_store, index) => index % 5 === 0));

test.each([
  ["with one fence for all keys", {}],
  ["with fences of each key", countingFences()],
  ["with a page that has none of its keys", sparsePages],
])("a correct store passes every case: %s", async (_name, store) => {
  expect(await failuresOf(casesOf(store))).toEqual({});
});

test("every case is failed by one of these stores", () => {
  expect(neverFailed(wrongStores, casesOf({}))).toEqual([]);
});
