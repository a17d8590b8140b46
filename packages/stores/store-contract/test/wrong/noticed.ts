import type { ContractCase } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { type WrongStore, failuresOf } from "./wrong-store.ts";
import { casesOf, usesReference } from "./wrong-stores.ts";

interface Noticed {
  readonly does: string;
  /** How the name of the case begins that must notice. */
  readonly fails: string;
}

/** Tests that each of these stores fails the case that is meant for it, and that each case is failed by one of them. */
export function testWrongStores<Wrong extends Noticed>(
  stores: readonly Wrong[],
  bind: (wrong?: Wrong) => readonly ContractCase[],
  lacking?: RegExp,
): void {
  describe("the cases notice a store that", () => {
    test.each(stores)("$does", (wrong) => expectNoticed(wrong.fails, bind(wrong), lacking));
  });

  test("every case is failed by one of these stores", () => {
    expect(neverFailed(stores, bind())).toEqual([]);
  });
}

export function neverFailed(
  stores: readonly { readonly fails?: string }[],
  cases: readonly ContractCase[],
): readonly string[] {
  const names = cases.map(({ name }) => name);
  return names.filter((name) => !stores.some(({ fails }) => fails !== undefined && name.startsWith(fails)));
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
export function testNoticed(stores: readonly WrongStore[]): void {
  describe("the cases notice a store that", () => {
    test.each(stores)("$does", async (store) => {
      const { fails } = store;
      if (fails === undefined) expect(await isNoticed(casesOf(store).filter(usesReference))).toBe(true);
      else await expectNoticed(fails, casesOf(store));
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
