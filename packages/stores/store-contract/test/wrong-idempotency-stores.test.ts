// Each wrong store is noticed by the cases that are meant for it, or by the model. That no others fail: *.long.test.ts.
import { describe, expect, test } from "@jest/globals";
import { failuresOf } from "./wrong/failures.ts";
import { countingFences } from "./wrong/fences.ts";
import { sparsePages } from "./wrong/listings.ts";
import { casesOf, isOfModel, wrongStores } from "./wrong/wrong-stores.ts";

describe("the cases notice a store that", () => {
  test.each(wrongStores.filter(({ fails }) => fails !== undefined))("$does", async (store) => {
    const { fails = [] } = store;
    const meant = casesOf(store).filter(({ name }) => fails.some((begin) => name.startsWith(begin)));
    expect(meant).toHaveLength(fails.length);
    expect(Object.keys(await failuresOf(meant))).toEqual(meant.map(({ name }) => name));
  });
});

describe("the model notices a store that", () => {
  test.each(wrongStores.filter(({ fails }) => fails === undefined))("$does", async (store) => {
    const failures = await failuresOf(casesOf(store).filter(isOfModel));
    expect(Object.values(failures).join("\n")).toContain("a right store answers");
  });
});

test.each([
  ["with one fence for all keys", {}],
  ["with fences of each key", { wrong: countingFences() }],
  ["with a page that has none of its keys", { wrong: sparsePages }],
])("a correct store passes every case: %s", async (_name, store) => {
  expect(await failuresOf(casesOf(store))).toEqual({});
});

test("every named case is failed by one of these stores", () => {
  const failed = wrongStores.flatMap(({ fails = [] }) => fails);
  const never = casesOf({}).filter(
    (one) => !isOfModel(one) && !failed.some((begin) => one.name.startsWith(begin)),
  );
  expect(never.map(({ name }) => name)).toEqual([]);
});
