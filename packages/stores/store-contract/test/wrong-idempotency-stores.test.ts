// Each wrong store is noticed by the cases that are meant for it. That no others fail: *.long.test.ts.
import { describe, expect, test } from "@jest/globals";
import { failuresOf } from "./wrong/failures.ts";
import { casesOf, wrongStores } from "./wrong/wrong-stores.ts";

describe("the cases notice a store that", () => {
  test.each(wrongStores)("$does", async (store) => {
    const meant = casesOf(store).filter(({ name }) => store.fails.includes(name));
    expect(new Set(Object.keys(await failuresOf(meant)))).toEqual(new Set(store.fails));
  });
});

test("every case is failed by one of these stores", () => {
  const failed = new Set(wrongStores.flatMap(({ fails }) => fails));
  const never = casesOf({}).filter(({ name }) => !failed.has(name));
  expect(never.map(({ name }) => name)).toEqual([]);
});
