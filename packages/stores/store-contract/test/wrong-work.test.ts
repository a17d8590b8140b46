import { workStoreContract } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import { type WrongStores, workHarness } from "./work-harness.ts";
import { waitingStores, waitingWork } from "./wrong/waiting-work.ts";
import { wrongEnds } from "./wrong/wrong-ends.ts";
import { failuresOf } from "./wrong/wrong-store.ts";
import { wrongWork } from "./wrong/wrong-work.ts";

const wrongStores = [...wrongWork, ...wrongEnds, ...waitingWork];

function casesOf(wrong: WrongStores) {
  return workStoreContract(() => workHarness("memory", { wrong }));
}

const isWaiting = ({ name }: { name: string }) => waitingWork.some(({ fails }) => name.startsWith(fails));

test("a correct store passes every case", async () => {
  expect(await failuresOf(casesOf(() => ({})).filter((one) => !isWaiting(one)))).toEqual({});
  expect(await failuresOf(casesOf(waitingStores()).filter(isWaiting))).toEqual({});
});

describe("the cases notice a store that", () => {
  test.each(wrongStores)("$does", async ({ fails, wrong }) => {
    const meant = casesOf(wrong).filter(({ name }) => name.startsWith(fails));
    expect(meant).toHaveLength(1);
    const failures = await failuresOf(meant);
    expect(Object.keys(failures)).toEqual(meant.map(({ name }) => name));
    // Not by what the harness lacks.
    expect(Object.values(failures)).not.toContainEqual(
      expect.stringMatching(/harness lacks|is not a function|SQLITE|near "/),
    );
  });
});

test("every case is failed by one of these stores", () => {
  const never = casesOf(() => ({})).filter(
    ({ name }) => !wrongStores.some(({ fails }) => name.startsWith(fails)),
  );
  expect(never.map(({ name }) => name)).toEqual([]);
});
