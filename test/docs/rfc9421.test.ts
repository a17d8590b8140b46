import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const folders: Readonly<Record<string, string>> = {
  E: "packages/kernel/http-message-signatures",
  V: "packages/checks/http-signature-verify",
  D: "packages/checks/content-digest",
  T: "test",
};
const pathOf = (written: string): string => join(root, folders[written[0] ?? ""] ?? "", written.slice(2));

const page = readFileSync(join(root, "docs", "rfc9421.md"), "utf8");
const rows = [...page.matchAll(/^- \*\*(\d[^*]*)\*\* (.*?\.) (`[EVD]\/src\/[^`]+`), (`.*)$/gm)];

test("each line of the list is a demand with its file and its test", () => {
  expect(page.match(/^- /gm)).toHaveLength(rows.length);
});

test("the table of demands has both RFCs", () => {
  expect(rows.length).toBeGreaterThan(45);
});

test.each(rows.map(([, section = "", demand = "", file = "", shown = ""]) => [section, demand, file, shown]))(
  "section %s, %s is kept in %s and shown by %s",
  (_section, demand, file, shown) => {
    expect(demand).toMatch(/\.$/);
    const source = /^`([EVD]\/src\/[^`]+)`$/.exec(file)?.[1];
    expect(source !== undefined && existsSync(pathOf(source))).toBe(true);
    const [, path = "", title = ""] = /^`([EVD]\/test\/[^`]+|T\/vectors\/[^`]+)` "(.+)"$/.exec(shown) ?? [];
    expect(title).not.toBe("");
    // Titles stand in one piece in the source of their test.
    expect(readFileSync(pathOf(path), "utf8")).toContain(title);
  },
);
