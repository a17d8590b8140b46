import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { docsOf, GuardError } from "@countersign/core";
import { problemAnswer } from "@countersign/core/door";
import { expect, test } from "@jest/globals";
import { payoutFaultCodes } from "../../packages/endpoints/payout/dist/faults.js";
import { packageFolder, workspacePackages } from "../../scripts/workspace.mjs";
import { codes } from "../../site/codes/index.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
// What these say is for the other side of the wire, and stands in their own pages.
const others = new Set(["cli", "inspector", "sandbox", "service-client", "store-contract"]);
const sources = [...workspacePackages.keys()]
  .filter((name) => !others.has(name))
  .flatMap((name) => {
    const folder = join(root, packageFolder(name), "src");
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFileSync(join(folder, file), "utf8"));
  });

const members = (text: string): string[] =>
  [...text.matchAll(/"([a-z0-9-]+)"/g)].map(([, code = ""]) => code);
const declared = sources.flatMap((text) =>
  [...text.matchAll(/^export type \w+Code =([^;]+);/gm)].flatMap(([, union = ""]) => members(union)),
);
// `{ code: "…" }` of a notice or an event, and what is told by a function of the code.
const told = sources.flatMap((text) =>
  [...text.matchAll(/(?:\bcode: |#alarm\(|#lose\(|\btell\()"([a-z0-9-]+)"/g)].map(([, code = ""]) => code),
);
// Of a field of a payout, in the answer's `errors`: explained in the page of payout.
const ofFields = new Set<string>(payoutFaultCodes);

test("the page has every code of the packages, and no other", () => {
  const all = [...declared, ...told.filter((code) => !ofFields.has(code))];
  expect(ofFields.size).toBeGreaterThan(0);
  expect(new Set(codes.keys())).toEqual(new Set(all));
});

test("each error of these codes has the address of its place on the page, and of no other code", () => {
  const { homepage } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { homepage: string };
  for (const code of codes.keys()) {
    const error = new GuardError({ status: 503, code, message: "m" });
    expect(error.docs).toBe(`${homepage}reference/codes.html#${code}`);
  }
  expect(docsOf("tenant-unknown")).toBeUndefined();
});

test.each([400, 401, 409, 503])("no answer with %i has the address", (status) => {
  for (const code of codes.keys()) {
    const error = new GuardError({ status, code, message: "m", problem: { code } });
    expect(JSON.stringify([problemAnswer(error), error])).not.toMatch(/docs|countersign\.github\.io/);
  }
});

// An hour of an unreachable store; a PostgreSQL without fsync, which test/support starts for the tests of its own package.
const withoutExample = ["postgres-not-durable", "settlement-abandoned"];

test("each code has an example, but for those that nobody can wait for here", () => {
  const lacking = [...codes].filter(([, { provoke }]) => provoke === undefined).map(([code]) => code);
  expect(new Set(lacking)).toEqual(new Set(withoutExample));
});

const committed = readFileSync(join(root, "docs/pages/reference/codes.md"), "utf8");

test.each([...codes].filter(([, { provoke }]) => provoke !== undefined).map(([code]) => code))(
  "%s happens as the page says, with the status that it gives",
  async (code) => {
    const entry = codes.get(code);
    const happened = await entry?.provoke?.();
    expect(happened).toMatchObject({ code });
    // Stale? npm run docs:markdown
    expect(committed).toContain(`\n${happened?.text}\n\`\`\`\n`);
    if (happened?.text.startsWith("countersign: ")) {
      expect(happened.status).toBe(entry?.status);
      expect(happened.text).toContain(`; see ${String(docsOf(code))}`);
    } else expect(entry?.status).toBe(happened?.status);
  },
);
