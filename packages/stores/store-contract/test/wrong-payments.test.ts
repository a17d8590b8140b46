import { transactionStoreContract } from "@countersign/store-contract";
import { expect, test } from "@jest/globals";
import { type WrongTransactions, paymentHarness } from "./payment-harness.ts";
import { waitingPayments, waitingTransactions } from "./wrong/waiting-payments.ts";
import { wrongPayments } from "./wrong/wrong-payments.ts";
import { testWrongStores } from "./wrong/noticed.ts";
import { failuresOf, listed } from "./wrong/wrong-store.ts";

const wrongStores = [wrongPayments, waitingPayments].flatMap(listed);

function casesOf(wrong?: WrongTransactions) {
  return transactionStoreContract(() => paymentHarness("memory", wrong));
}

const isWaiting = ({ name }: { name: string }) =>
  Object.keys(waitingPayments).some((fails) => name.startsWith(fails));

test("a correct store passes every case", async () => {
  expect(await failuresOf(casesOf().filter((one) => !isWaiting(one)))).toEqual({});
  expect(await failuresOf(casesOf(waitingTransactions()).filter(isWaiting))).toEqual({});
});

testWrongStores(wrongStores, casesOf);
