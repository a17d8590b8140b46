import type { ContractCase } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { type Listed, failuresOf, reference } from "./wrong-store.ts";
import { casesOf, usesReference, type wrongStores } from "./wrong-stores.ts";

/** Tests that each of these stores fails the case that is meant for it, and that each case is failed by one of them. */
export function testWrongStores<Wrong>(
  stores: readonly Listed<Wrong>[],
  bind: (wrong?: Wrong) => readonly ContractCase[],
  lacking?: RegExp,
): void {
  describe("the cases notice a store that", () => {
    test.each(stores)("$does", ({ fails, wrong }) => expectNoticed(fails, bind(wrong), lacking));
  });

  test("every case is failed by one of these stores", () => {
    expect(neverFailed(stores, bind())).toEqual([]);
  });
}

export function neverFailed(
  stores: readonly { readonly fails: string }[],
  cases: readonly ContractCase[],
): readonly string[] {
  const names = cases.map(({ name }) => name);
  return names.filter((name) => !stores.some(({ fails }) => name.startsWith(fails)));
}

/** By what the case is about, and not by what the harness lacks. */
async function expectNoticed(
  fails: string,
  cases: readonly ContractCase[],
  lacking = /harness lacks|is not a function/,
): Promise<void> {
  const meant = cases.filter(({ name }) => name.startsWith(fails));
  expect(meant).toHaveLength(1);
  const failures = await failuresOf(meant);
  expect(Object.keys(failures)).toEqual(meant.map(({ name }) => name));
  expect(Object.values(failures)).not.toContainEqual(expect.stringMatching(lacking));
}

/** The same of the idempotency stores, some of which are only noticed beside the reference. */
export function testNoticed(stores: typeof wrongStores): void {
  describe("the cases notice a store that", () => {
    test.each(stores)("$does", async ({ fails, wrong }) => {
      const cases = casesOf(wrong);
      if (fails === reference) expect(await isNoticed(cases.filter(usesReference))).toBe(true);
      else await expectNoticed(fails, cases);
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
