import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { docsOf, GuardError } from "@countersign/core";
import { pageOf, problems } from "@countersign/core/internal";
import { expect, test } from "@jest/globals";
import { payoutFaultCodes } from "../../packages/endpoints/countersign/dist/payout/faults.js";
import { allCodes } from "../../packages/tools/cli/dist/explain/codes.js";
import { remedyOf } from "../../packages/tools/cli/dist/explain/index.js";
import { documentedParts, sourceFilesOf } from "../../scripts/workspace.mjs";
import { provocations } from "../../site/codes/index.mjs";
import { anchorsOf, githubAnchor, vitepressAnchor } from "../../site/scripts/anchors.mjs";
import { exampleFence } from "../../site/scripts/codes.mjs";
import { repository } from "../../site/scripts/source.mjs";
import { allowWarnings } from "../support/runs/expect-warning.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
// What these say is for the other side of the wire, and stands in their own pages.
const others = new Set(["cli", "client", "devtools", "inspector", "sandbox", "store-contract"]);
const sources = [...documentedParts.keys()]
  .filter((name) => !others.has(name))
  .flatMap((name) => sourceFilesOf(name).map((file) => readFileSync(join(root, file), "utf8")));

const codes = allCodes();
const members = (text: string): string[] =>
  [...text.matchAll(/"([a-z0-9-]+)"/g)].map(([, code = ""]) => code);
const declared = sources.flatMap((text) =>
  [...text.matchAll(/^export type \w+Code =([^;]+);/gm)].flatMap(([, union = ""]) => members(union)),
);
// `{ code: "…" }` of a notice or an event, and what is told by a function of the code.
const told = sources.flatMap((text) =>
  [...text.matchAll(/(?:\bcode: |#alarm\(|#lose\(|#lostEffect\(|\btell\()"([a-z0-9-]+)"/g)].map(
    ([, code = ""]) => code,
  ),
);
// Of a field of a payout, in the answer's `errors`: explained in the page of payout.
const ofFields = new Set<string>(payoutFaultCodes);

test("the page has every code of the packages, and no other", () => {
  const all = [...declared, ...told.filter((code) => !ofFields.has(code))];
  expect(ofFields.size).toBeGreaterThan(0);
  expect(new Set(codes.keys())).toEqual(new Set(all));
});

test("pages are those of the repository, or of the site whose address the workspace has", () => {
  const { homepage } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { homepage: string };
  expect([`${homepage}a/b.html#c`, `${repository}/blob/main/site/pages/a/b.md#c`]).toContain(pageOf("a/b#c"));
});

test("a created project leads to the pages that messages name", () => {
  const readme = readFileSync(
    join(root, "packages/tools/create-countersign/templates/common/README.md"),
    "utf8",
  );
  const [before = "", after = ""] = pageOf("*").split("*");
  const links = [...readme.matchAll(/\]\((https:[^)]+)\)/g)].map(([, link = ""]) => link);
  const places = links.map((link) => link.slice(before.length, -after.length));
  expect(places.map(pageOf)).toEqual(links);
  expect(places).toEqual(expect.arrayContaining(["guide/unauthorized", "reference/codes", "guide/go-live"]));
  for (const place of places) expect(existsSync(join(root, `site/pages/${place}.md`))).toBe(true);
});

// Both make the same anchor of these titles, so that the address may change from one to the other.
test("each page that a message names is there, with its place", () => {
  const named = sources.flatMap((text) => [...text.matchAll(/page(?:Of|At)\("([a-z/-]+)#([a-z-]+)"/g)]);
  expect(named.length).toBeGreaterThan(0);
  for (const [, page = "", anchor = ""] of named) {
    const text = readFileSync(join(root, "site/pages", `${page}.md`), "utf8");
    expect(anchorsOf(text, githubAnchor)).toContain(anchor);
    expect(anchorsOf(text, vitepressAnchor)).toContain(anchor);
  }
});

test("each error of these codes has the address of its place on the page, and of no other code", () => {
  for (const code of codes.keys()) {
    const error = new GuardError({ status: 503, code, message: "m" });
    expect(error.docs).toBe(pageOf(`reference/codes#${code}`));
  }
  expect(docsOf("tenant-unknown")).toBeUndefined();
});

test.each([400, 401, 409, 503])("no answer with %i has the address", (status) => {
  for (const code of codes.keys()) {
    const error = new GuardError({ status, code, message: "m", problem: { code } });
    expect(JSON.stringify([problems.ofError(error), error])).not.toMatch(/docs|github/);
  }
});

// An hour of an unreachable store; a PostgreSQL without fsync, or a MariaDB that does not flush, which tests of their own packages start.
const withoutExample = ["mysql-not-durable", "postgres-not-durable", "settlement-abandoned"];

test("each code has an example, but for those that nobody can wait for here", () => {
  const lacking = [...codes.keys()].filter((code) => provocations[code] === undefined);
  expect(new Set(lacking)).toEqual(new Set(withoutExample));
  expect(Object.keys(provocations).filter((code) => !codes.has(code))).toEqual([]);
});

const committed = readFileSync(join(root, "site/pages/reference/codes.md"), "utf8");

test("the table has a row for each code, with its status and the packages that tell it", () => {
  const rows = [...committed.matchAll(/^\| \[([a-z0-9-]+)\]\([^)]*#\1\) \| (\w+) \| ([^|]+) \| .+ \|$/gm)];
  expect(rows).toHaveLength(codes.size);
  expect(new Set(rows.map(([, code]) => code))).toEqual(new Set(codes.keys()));
  for (const [, code = "", status, packages = ""] of rows) {
    const kinds: Readonly<Record<string, string>> = { notice: "notice", none: "no answer of its own" };
    expect(codes.get(code)?.kind).toBe(kinds[String(status)] ?? `status ${status}`);
    expect(packages.split(", ").filter((name) => name !== "all" && !documentedParts.has(name))).toEqual([]);
  }
});

/** The status that the page gives: none of a notice, nor of what has no answer of its own. */
function statusOnPage(code: string): number | undefined {
  const [, status] = /^status (\d+)$/.exec(codes.get(code)?.kind ?? "") ?? [];
  return status === undefined ? undefined : Number(status);
}

test.each(Object.entries(provocations))(
  "%s happens as the page says, with the status that it gives",
  async (code, provoke) => {
    // Without a subscriber a notice is a process warning too: its text is compared below.
    allowWarnings(/^\[[a-z0-9-]+\] /);
    const happened = await provoke();
    expect(happened).toMatchObject({ code });
    // Stale? npm run docs:update
    expect(committed).toContain(`\n${exampleFence(happened.text)}\n`);
    if (happened.text.startsWith("countersign: ")) {
      expect(happened.status).toBe(statusOnPage(code));
      expect(happened.text).toContain(`; see ${String(docsOf(code))}`);
    } else expect(statusOnPage(code)).toBe(happened.status);
  },
);

test.each([
  "signature-ambiguous",
  "target-invalid",
  "method-invalid",
  "authority-conflict",
  "query-not-covered",
  "body-not-covered",
  "method-override",
  "nonce-replayed",
  "policy-unknown",
])("the remedy of %s on the page begins with what explain says", (code) => {
  const said = remedyOf(code) ?? "nothing";
  expect(codes.get(code)?.remedy.slice(0, said.length)).toBe(said);
});
