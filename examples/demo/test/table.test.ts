import { expect, test } from "@jest/globals";
import { formatTable } from "../src/table.ts";

test("formatTable aligns the columns, marks what was not expected and counts", () => {
  const table = formatTable([
    { name: "a good payout", expected: "200", got: "200", ok: true },
    { name: "a replayed nonce", expected: "200 401", got: "200 200", ok: false },
  ]);
  expect(table.split("\n")).toEqual([
    "case              expected  got      ok",
    "----------------  --------  -------  ---",
    "a good payout     200       200      yes",
    "a replayed nonce  200 401   200 200  NO",
    "",
    "1 of 2 as expected",
  ]);
});
