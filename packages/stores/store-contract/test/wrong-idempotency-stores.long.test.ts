// All named cases on each wrong store: those that must notice do, and no others.
import { describe, expect, test } from "@jest/globals";
import { failuresOf } from "./wrong/failures.ts";
import { casesOf, isOfModel, wrongStores } from "./wrong/wrong-stores.ts";

describe("the cases notice a store that", () => {
  test.each(wrongStores)("$does", async (store) => {
    const { fails = [] } = store;
    const named = casesOf(store).filter((one) => !isOfModel(one));
    const failures = Object.keys(await failuresOf(named));
    expect(failures.filter((name) => !fails.some((begin) => name.startsWith(begin)))).toEqual([]);
    expect(failures).toHaveLength(fails.length);
  });
});
