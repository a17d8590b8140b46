import { transactionStoreContract } from "@countersign/store-contract";
import { expect, test } from "@jest/globals";
import { type WrongTransactions, paymentHarness } from "./payment-harness.ts";
import { waitingPayments, waitingTransactions } from "./wrong/waiting-payments.ts";
import { wrongPayments } from "./wrong/wrong-payments.ts";
import { testWrongStores } from "./wrong/noticed.ts";
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

testWrongStores(wrongStores, (store) => casesOf(store?.wrong));
