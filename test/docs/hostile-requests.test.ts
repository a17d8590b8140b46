import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { hostileRows } from "../doors/hostile-rows.ts";
import { socketRows } from "../doors/hostile-socket-rows.ts";
import { payoutRows } from "../doors/payout-rows.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const folders: Readonly<Record<string, string>> = {
  E: "packages/kernel/http-message-signatures",
  V: "packages/checks/http-signature-verify",
  D: "packages/checks/content-digest",
  F: "packages/doors/fetch",
  T: "test",
};

const rows = readFileSync(join(root, "docs", "hostile-requests.md"), "utf8")
  .split("\n")
  .filter((line) => /^\| (?!-|Request )/.test(line))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));
const tables: Readonly<Record<string, readonly string[]>> = {
  doors: [...hostileRows, ...payoutRows].map(({ title }) => title),
  sockets: socketRows.map(({ title }) => title),
};

/** Whether a test of that title is in the table, or in one piece in the source of its file. */
function isThere(shown: string): boolean {
  const [, where = "", title = ""] = /^(doors|sockets|`[A-Z]\/[^`]+`) "(.+)"$/.exec(shown) ?? [];
  const table = tables[where];
  if (table !== undefined) return table.includes(title);
  const path = join(root, folders[where.charAt(1)] ?? "", where.slice(3, -1));
  return title !== "" && existsSync(path) && readFileSync(path, "utf8").includes(title);
}

test("the table of hostile requests has every group", () => {
  expect(rows.length).toBeGreaterThan(50);
});

test.each(rows.map(([, request = "", answer = "", shown = ""]) => [request, answer, shown]))(
  "%s: %s, is shown by tests that are there",
  (_request, answer, shown) => {
    expect(answer).not.toBe("");
    expect(shown.split("<br>").filter((each) => !isThere(each))).toEqual([]);
  },
);
