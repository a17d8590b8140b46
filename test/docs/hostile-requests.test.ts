import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { refusedRows } from "../adapters/hostile-http2-rows.ts";
import { hostileRows } from "../adapters/hostile-rows.ts";
import { socketRows } from "../adapters/hostile-socket-rows.ts";
import { payoutRows } from "../adapters/payout-rows.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const folders: Readonly<Record<string, string>> = {
  E: "packages/kernel/http-message-signatures",
  V: "packages/checks/http-signature-verify",
  D: "packages/checks/content-digest",
  F: "packages/adapters/fetch",
  T: "test",
};

const page = readFileSync(join(root, "site/pages/concepts/hostile-requests.md"), "utf8");
const rows = [...page.matchAll(/^- \*\*(.+?):\*\* (.+?)\. (`[A-Z]\/.*)$/gm)];

/** The titles that the page gives to each answer, by group. */
function shownIn(group: string): ReadonlyMap<string, readonly string[]> {
  const [section = ""] = page.split(`## ${group}\n`)[1]?.split("\n## ") ?? [];
  const lines = [...section.matchAll(/^- (.+?): (.*)$/gm)];
  const plain = (title: string): string => title.replaceAll(/\\(.)/g, "$1").replaceAll("&lt;", "<");
  return new Map(lines.map(([, answer = "", titles = ""]) => [answer, titles.split(" · ").map(plain)]));
}

const groupsOfAdapters = [
  "Components and the base",
  "Several signatures",
  "Targets, servers and schemes",
  "Bodies and digests",
  "Policies, times and stores",
];

test.each<[name: string, groups: readonly string[], rows: readonly { readonly title: string }[]]>([
  ["payouts", ["A payout"], payoutRows],
  ["policies", groupsOfAdapters, hostileRows],
  ["connections", ["Bytes on a connection"], socketRows],
  ["HTTP/2", ["HTTP/2"], refusedRows.map(([title]) => ({ title }))],
])("the page has the title of every row of %s", (_name, groups, all) => {
  const shown = groups.flatMap((group) => [...shownIn(group).values()].flat());
  expect(shown).toHaveLength(all.length);
  expect(new Set(shown)).toEqual(new Set(all.map(({ title }) => title)));
});

test("a row stands under the status and the code that its test demands", () => {
  const shown = groupsOfAdapters.map(shownIn);
  for (const { title, answer, code } of hostileRows.filter((row) => row.code !== undefined)) {
    const key = answer === "unknown-route" ? answer : `${answer.status} \`${code}\``;
    expect(shown.flatMap((group) => group.get(key) ?? [])).toContain(title);
  }
});

/** Whether a test of that title stands in one piece in the source of its file. */
function isThere(shown: string): boolean {
  const [, where = "", title = ""] = /^`([A-Z]\/[^`]+)` "(.+)"$/.exec(shown) ?? [];
  const path = join(root, folders[where.charAt(0)] ?? "", where.slice(2));
  return title !== "" && existsSync(path) && readFileSync(path, "utf8").includes(title);
}

test("the page has rows of other tests", () => {
  expect(rows.length).toBeGreaterThan(15);
  expect(page.match(/^- \*\*/gm)).toHaveLength(rows.length);
});

test.each(rows.map(([, request = "", answer = "", shown = ""]) => [request, answer, shown]))(
  "%s: %s, is shown by tests that are there",
  (_request, answer, shown) => {
    expect(answer).not.toBe("");
    expect(shown.split(" · ").filter((each) => !isThere(each))).toEqual([]);
  },
);
