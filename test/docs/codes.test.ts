import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { workspacePackages, root } from "../../scripts/workspace.mjs";
import { packagePage } from "./package-pages.ts";

/** The unions of the codes in the tables of codes of each package's page. */
const unions: Readonly<Record<string, readonly string[]>> = {
  "content-digest": ["ContentDigestCode"],
  core: ["CoreCode"],
  express: ["ExpressCode"],
  "http-message-signatures": ["MessageSignatureErrorCode"],
  "http-signature-verify": ["HttpSignatureCode", "HttpSignatureSignCode"],
  idempotency: ["IdempotencyCode"],
  "idempotency-guard": ["IdempotencyGuardCode"],
  "ip-allowlist": ["IpAllowlistCode"],
  payout: ["PayoutCode"],
  "raw-body": ["RawBodyCode"],
  sandbox: ["SandboxErrorCode"],
  "service-client": ["ServiceClientErrorCode"],
  "store-redis": ["RedisNoticeCode"],
  "webhook-basic-auth": ["BasicAuthCode"],
  "webhook-hmac": ["PayloadSignatureCode"],
  webhooks: ["WebhookCode"],
};

interface Union {
  readonly own: readonly string[];
  readonly others: readonly string[];
}

const sources = [...workspacePackages].flatMap(([name, member]) => {
  const folder = join(root, member.folder, "src");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => ({ file: `${name}/src/${file}`, text: readFileSync(join(folder, file), "utf8") }));
});

const declaration = /^export type (\w+Code) =([^;]+);/gm;

/** What stands in the declaration of each exported type whose name ends in Code. */
const declared: ReadonlyMap<string, string> = new Map(
  sources
    .flatMap(({ text }) => [...text.matchAll(declaration)])
    .map(([, name = "", members = ""]) => [name, members]),
);

/** The codes that a union names itself, and the unions in it. */
function unionOf(name: string): Union {
  const members = (declared.get(name) ?? "").split("|").map((member) => member.trim());
  // Where there is more than one, one a line, the first begins with a bar.
  if (members.length > 1 && members[0] === "") members.shift();
  const own = members.flatMap((member) => /^"([a-z0-9-]+)"$/.exec(member)?.[1] ?? []);
  const others = members.filter((member) => /^[A-Z]\w*Code$/.test(member));
  if (own.length + others.length === members.length) return { own, others };
  throw new Error(`no package exports ${name}, or it is no union of codes`);
}

function codesOf(name: string): readonly string[] {
  const { own, others } = unionOf(name);
  return [...own, ...others.flatMap(codesOf)];
}

function codesOfPackage(name: string): readonly string[] {
  return (unions[name] ?? [`a union of ${name}`]).flatMap(codesOf);
}

/** The first cells of the tables of codes, without headers and rules; undefined where a page has none. */
function codeCells(page: string): readonly string[] | undefined {
  const tables = [...page.matchAll(/^\| *code *\|.*\n\|[-| ]+\n((?:\|.*\n)+)/gim)];
  if (tables.length === 0) return undefined;
  return tables.flatMap(([, rows = ""]) => rows.trimEnd().split("\n")).map((row) => row.split("|")[1] ?? "");
}

const codesIn = (text: string): readonly string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
const linkedFrom = (cell: string): readonly string[] =>
  [...cell.matchAll(/\]\(\.\/([a-z-]+)\.md\)/g)].map(([, name = ""]) => name);

test("each page with a table of codes is compared here, and no other", () => {
  const withTable = [...workspacePackages.keys()].filter(
    (name) => codeCells(packagePage(name)) !== undefined,
  );
  expect(new Set(withTable)).toEqual(new Set(Object.keys(unions)));
});

test.each(Object.entries(unions))("the page of %s has the codes of %j, and no others", (name, unionNames) => {
  const cells = codeCells(packagePage(name)) ?? [];
  const listed = cells.filter((cell) => linkedFrom(cell).length === 0).flatMap(codesIn);
  const linked = new Set(cells.flatMap(linkedFrom).flatMap(codesOfPackage));

  const declaredHere = unionNames.map(unionOf);
  const own = declaredHere.flatMap((union) => union.own);
  const others = declaredHere.flatMap((union) => union.others);
  // What another package's table explains need not be explained again.
  const toBeListed = [...own, ...others.flatMap(codesOf).filter((code) => !linked.has(code))];
  expect(toBeListed.filter((code) => !listed.includes(code))).toEqual([]);

  const known = [...unionNames.flatMap(codesOf), ...linked];
  const knownIn = (cell: string): readonly string[] =>
    linkedFrom(cell).length === 0 ? known : linkedFrom(cell).flatMap(codesOfPackage);
  expect(cells.flatMap((cell) => codesIn(cell).filter((code) => !knownIn(cell).includes(code)))).toEqual([]);
  expect(listed).toHaveLength(new Set(listed).size);
});

// It has no table of its own for one code, which stands among what the store's errors say.
test("the page of store-postgres has the codes of PostgresStoreCode, and no others", () => {
  const rows = packagePage("store-postgres")
    .split("\n")
    .filter((line) => line.startsWith("|"));
  const listed = rows.flatMap((row) => [...row.matchAll(/\b[45]\d\d `([a-z-]+)`/g)]).map(([, code]) => code);
  expect(new Set(listed)).toEqual(new Set(codesOf("PostgresStoreCode")));
});

test("each GuardError is made with a union of codes", () => {
  const made = sources.flatMap(({ file, text }) =>
    [...text.matchAll(/new GuardError\b(<\w+>)?/g)].map(([, union = "none"]) => ({
      file,
      union: union.slice(1, -1),
    })),
  );
  expect(made.length).toBeGreaterThan(0);
  expect(made.filter(({ union }) => !declared.has(union))).toEqual([]);
});

// Whole, or as the end of a template such as `credentials-${reason}`.
test("each code of a union is used somewhere", () => {
  const code = sources.map(({ text }) => text.replaceAll(declaration, "")).join("\n");
  const prefixes = [...code.matchAll(/`([a-z-]+-)\$\{\w+\}`/g)].map(([, prefix = ""]) => prefix);
  const isUsed = (name: string): boolean =>
    code.includes(`"${name}"`) ||
    prefixes.some((prefix) => name.startsWith(prefix) && code.includes(`"${name.slice(prefix.length)}"`));
  const all = [...Object.values(unions).flat(), "PostgresStoreCode"].flatMap((name) => codesOf(name));
  expect(all.filter((name) => !isUsed(name))).toEqual([]);
});
