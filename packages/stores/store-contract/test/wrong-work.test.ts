import { workStoreContract } from "@countersign/store-contract";
import { expect, test } from "@jest/globals";
import { type WrongStores, workHarness } from "./work-harness.ts";
import { waitingStores, waitingWork } from "./wrong/waiting-work.ts";
import { wrongEnds } from "./wrong/wrong-ends.ts";
import { testWrongStores } from "./wrong/noticed.ts";
import { failuresOf, listed } from "./wrong/wrong-store.ts";
import { wrongWork } from "./wrong/wrong-work.ts";

const wrongStores = [wrongWork, wrongEnds, waitingWork].flatMap(listed);

function casesOf(wrong: WrongStores = () => ({})) {
  return workStoreContract(() => workHarness("memory", { wrong }));
}

const isWaiting = ({ name }: { name: string }) =>
  Object.keys(waitingWork).some((fails) => name.startsWith(fails));

test("a correct store passes every case", async () => {
  expect(await failuresOf(casesOf().filter((one) => !isWaiting(one)))).toEqual({});
  expect(await failuresOf(casesOf(waitingStores()).filter(isWaiting))).toEqual({});
});

testWrongStores(wrongStores, casesOf, /harness lacks|is not a function|SQLITE|near "|no such column/);
