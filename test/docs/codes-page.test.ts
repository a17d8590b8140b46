import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { docsOf, GuardError } from "@countersign/core";
import { pageOf, problems } from "@countersign/core/internal";
import { expect, test } from "@jest/globals";
import { payoutFaultCodes } from "../../packages/endpoints/countersign/dist/payout/faults.js";
import { documentedParts, sourceFilesOf } from "../../scripts/workspace.mjs";
import { codes } from "../../site/codes/index.mjs";
import { anchorsOf, githubAnchor, vitepressAnchor } from "../../site/scripts/anchors.mjs";
import { exampleFence } from "../../site/scripts/codes-page.mjs";
import { repository } from "../../site/scripts/source.mjs";
import { allowWarnings } from "../support/runs/expect-warning.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
// What these say is for the other side of the wire, and stands in their own pages.
const others = new Set(["cli", "client", "devtools", "inspector", "sandbox", "store-contract"]);
const sources = [...documentedParts.keys()]
  .filter((name) => !others.has(name))
  .flatMap((name) => sourceFilesOf(name).map((file) => readFileSync(join(root, file), "utf8")));

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
  expect([`${homepage}a/b.html#c`, `${repository}/blob/main/docs/pages/a/b.md#c`]).toContain(pageOf("a/b#c"));
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
  for (const place of places) expect(existsSync(join(root, `docs/pages/${place}.md`))).toBe(true);
});

// Both make the same anchor of these titles, so that the address may change from one to the other.
test("each page that a message names is there, with its place", () => {
  const named = sources.flatMap((text) => [...text.matchAll(/page(?:Of|At)\("([a-z/-]+)#([a-z-]+)"/g)]);
  expect(named.length).toBeGreaterThan(3);
  for (const [, page = "", anchor = ""] of named) {
    const text = readFileSync(join(root, "docs/pages", `${page}.md`), "utf8");
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
  const lacking = [...codes].filter(([, { provoke }]) => provoke === undefined).map(([code]) => code);
  expect(new Set(lacking)).toEqual(new Set(withoutExample));
});

const committed = readFileSync(join(root, "docs/pages/reference/codes.md"), "utf8");

test("the table has a row for each code, with its status and the packages that tell it", () => {
  const rows = [...committed.matchAll(/^\| \[([a-z0-9-]+)\]\([^)]*#\1\) \| (\w+) \| ([^|]+) \| .+ \|$/gm)];
  expect(rows).toHaveLength(codes.size);
  expect(new Set(rows.map(([, code]) => code))).toEqual(new Set(codes.keys()));
  for (const [, code = "", status, packages = ""] of rows) {
    const { notice, status: own } = codes.get(code) ?? {};
    expect(status).toBe(notice === true ? "notice" : String(own ?? "none"));
    expect(packages.split(", ").filter((name) => name !== "all" && !documentedParts.has(name))).toEqual([]);
  }
});

test.each([...codes].filter(([, { provoke }]) => provoke !== undefined).map(([code]) => code))(
  "%s happens as the page says, with the status that it gives",
  async (code) => {
    const entry = codes.get(code);
    // Without a subscriber a notice is a process warning too: its text is compared below.
    allowWarnings(/^\[[a-z0-9-]+\] /);
    const happened = await entry?.provoke?.();
    expect(happened).toMatchObject({ code });
    // Stale? npm run docs:markdown
    expect(committed).toContain(`\n${exampleFence(happened?.text ?? "")}\n`);
    if (happened?.text.startsWith("countersign: ")) {
      expect(happened.status).toBe(entry?.status);
      expect(happened.text).toContain(`; see ${String(docsOf(code))}`);
    } else expect(entry?.status).toBe(happened?.status);
  },
);
