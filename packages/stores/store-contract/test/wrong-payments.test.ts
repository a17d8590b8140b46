import { transactionStoreContract } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { type WrongTransactions, paymentHarness } from "./payment-harness.ts";
import { waitingPayments, waitingTransactions } from "./wrong/waiting-payments.ts";
import { wrongPayments } from "./wrong/wrong-payments.ts";
import { failuresOf } from "./wrong/wrong-store.ts";

const wrongStores = [...wrongPayments, ...waitingPayments];

function casesOf(wrong?: WrongTransactions) {
  return transactionStoreContract(() => paymentHarness("memory", wrong));
}

const isWaiting = ({ name }: { name: string }) => waitingPayments.some(({ fails }) => name.startsWith(fails));

test("a correct store passes every case", async () => {
  expect(await failuresOf(casesOf().filter((one) => !isWaiting(one)))).toEqual({});
  expect(await failuresOf(casesOf(waitingTransactions()).filter(isWaiting))).toEqual({});
});

describe("the cases notice a store that", () => {
  test.each(wrongStores)("$does", async ({ fails, wrong }) => {
    const meant = casesOf(wrong).filter(({ name }) => name.startsWith(fails));
    expect(meant).toHaveLength(1);
    const failures = await failuresOf(meant);
    expect(Object.keys(failures)).toEqual(meant.map(({ name }) => name));
    // Not by what the harness lacks.
    expect(Object.values(failures)).not.toContainEqual(
      expect.stringMatching(/harness lacks|is not a function/),
    );
  });
});

test("every case is failed by one of these stores", () => {
  const never = casesOf().filter(({ name }) => !wrongStores.some(({ fails }) => name.startsWith(fails)));
  expect(never.map(({ name }) => name)).toEqual([]);
});
