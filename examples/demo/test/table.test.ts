import { expect, test } from "@jest/globals";
import { resultTable } from "../src/table.ts";

const good = { name: "a good payout", expected: "200", got: "200", ok: true };
const bad = { name: "a replayed nonce", expected: "200 401", got: "200 200", ok: false };

function printed(colours: boolean, ...results: readonly (typeof good)[]): { all: boolean; lines: string[] } {
  const lines: string[] = [];
  const table = resultTable((text) => lines.push(...text.split("\n")), colours);
  table.say("payouts");
  for (const result of results) table.add(result);
  return { all: table.end(), lines };
}

test("resultTable aligns the answers, shows what was expected only where it differs, and counts", () => {
  expect(printed(false, good, bad)).toEqual({
    all: false,
    lines: [
      "",
      "payouts",
      "ok  a good payout                       200",
      "NO  a replayed nonce                    200 200",
      "    expected                            200 401",
      "",
      "1 of 2 as expected",
    ],
  });
});

test("resultTable paints what is as expected green, and the rest red", () => {
  const green = "\u001B[32m";
  const red = "\u001B[31m";
  const end = "\u001B[39m";
  const { all, lines } = printed(true, good);
  expect(all).toBe(true);
  expect(lines[1]).toBe("\u001B[2mpayouts\u001B[22m");
  expect(lines[2]).toBe(`${green}ok${end}  a good payout                       200`);
  expect(lines.at(-1)).toBe(`${green}1 of 1 as expected${end}`);
  expect(printed(true, bad).lines[2]).toBe(`${red}NO  a replayed nonce                    200 200${end}`);
});
