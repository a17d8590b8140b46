import type { ContractCase } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { type WrongStore, failuresOf } from "./wrong-store.ts";
import { casesOf, usesReference } from "./wrong-stores.ts";

/** Tests that the case notices each of these stores that is meant for it. */
export function testNoticed(stores: readonly WrongStore[]): void {
  describe("the cases notice a store that", () => {
    test.each(stores)("$does", async (store) => {
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
}

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
