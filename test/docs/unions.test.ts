// What programs compare with is told by the pages: known events, faults of fields, and every union of texts that a package exports.
import { readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { payoutFaultCodes } from "../../packages/endpoints/countersign/dist/payout/faults.js";
import { dataRules } from "../../packages/endpoints/countersign/dist/webhooks/envelope/envelope.js";
import { serviceStatuses } from "../../packages/tools/devtools/dist/loopback/problem.js";
import { documentedParts, sourceFilesOf } from "../../scripts/workspace.mjs";
import { packagePage } from "./package-pages.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

/** The rows of the table whose first column has this name, cell by cell. */
function rowsOf(page: string, firstColumn: string): readonly (readonly string[])[] {
  const table = new RegExp(`^\\| ${firstColumn} +\\|.*\\n\\|[-| ]+\\n((?:\\|.*\\n)+)`, "m").exec(page)?.[1];
  if (table === undefined) throw new Error(`no table begins with ${firstColumn}`);
  const cellsOf = (line: string): string[] => line.split("|").slice(1, -1);
  return table.trimEnd().split("\n").map(cellsOf);
}

const namesIn = (text = ""): readonly string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);

test("the page of payout has every fault of a field, and no other", () => {
  const rows = rowsOf(packagePage("payout"), "fault of a field");
  expect(rows.flatMap(([cell]) => namesIn(cell))).toEqual([...payoutFaultCodes]);
});

describe("the events of docs/spec.md", () => {
  const rows = rowsOf(read("docs/spec.md").split("## Event object")[1] ?? "", "type");

  test("are the known types, and no others", () => {
    expect(rows.flatMap(([type]) => namesIn(type))).toEqual(Object.keys(dataRules));
  });

  test.each(Object.entries(dataRules))("have the fields of %s", (type, rules) => {
    const data = rows.find(([cell]) => namesIn(cell).includes(type))?.[1];
    const fields = namesIn(data).filter((name) => /^[a-z_]+$/.test(name));
    expect(fields).toEqual(expect.arrayContaining(Object.keys(rules)));
    expect(fields).toHaveLength(Object.keys(rules).length);
  });
});

/** Where a union is told, when that is not its package's page. */
const elsewhere: Readonly<Record<string, string>> = {
  PartyStatus: "docs/spec.md",
  BodyCode: "site/pages/reference/packages/raw-body.md",
  JsonCode: "site/pages/reference/packages/raw-body.md",
};

interface Union {
  readonly name: string;
  readonly package: string;
  readonly members: readonly string[];
}

const packages = [...documentedParts.keys()].filter((name) => sourceFilesOf(name).some(isEntryPoint));
const unions = packages.flatMap(exportedUnions);

/** What a page tells of: of the entry points for siblings, the one that the page of the sandbox describes. */
function isEntryPoint(file: string): boolean {
  return basename(file) === "index.ts" || file === "packages/tools/devtools/src/internal.ts";
}

/** Of a package, the package itself and its entry points that have a page. */
function partsBeside(name: string): readonly string[] {
  const manifest = documentedParts.get(name)?.manifest;
  return [...documentedParts].filter(([, part]) => part.manifest === manifest).map(([part]) => part);
}

function sourcesOf(name: string): readonly string[] {
  return sourceFilesOf(name).map((file) => readFileSync(join(root, file), "utf8"));
}

/** The unions of texts that the entry points of a package export, without the other unions in them. */
function exportedUnions(name: string): readonly Union[] {
  const exported = partsBeside(name)
    .flatMap(sourceFilesOf)
    .filter(isEntryPoint)
    .map((file) => readFileSync(join(root, file), "utf8"))
    .join("\n");
  const declared = sourcesOf(name).flatMap((text) =>
    [...text.matchAll(/^export type (\w+) =([^;]+);/gm)].map(([, union = "", written = ""]) => ({
      name: union,
      package: name,
      parts: partsOf(written, text),
    })),
  );
  return declared.flatMap(({ parts, ...union }) => {
    const members = parts.flatMap((part) => /^"([^"]*)"$/.exec(part)?.[1] ?? []);
    const others = parts.filter((part) => /^[A-Z]\w*Code$/.test(part));
    const isUnion = members.length > 0 && members.length + others.length === parts.length;
    const isExported = new RegExp(`\\b${union.name}\\b`).test(exported);
    return isUnion && isExported ? [{ ...union, members }] : [];
  });
}

/** What stands between the bars of a union, or in the array that it is derived from. */
function partsOf(written: string, text: string): readonly string[] {
  const array = /^ \(typeof (\w+)\)\[number\]$/.exec(written)?.[1];
  const entries = new RegExp(`const ${array} = \\[([^\\]]*)\\] as const`).exec(text)?.[1];
  const parts = entries === undefined ? written.split("|") : entries.split(",");
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}

test("unions are found, in both forms", () => {
  const names = unions.map(({ name }) => name);
  for (const one of [
    "PayoutCode",
    "PayoutFaultCode",
    "HttpSignatureCode",
    "SendErrorCode",
    "PayoutVariant",
    "PartyStatus",
  ])
    expect(names).toContain(one);
});

test.each(unions)("every $name of $package is told by its page", ({ name, package: owner, members }) => {
  const place = elsewhere[name];
  const page = place === undefined ? packagePage(owner) : read(place);
  expect(
    members.filter((member) => !page.includes(`\`${member}\``) && !page.includes(`"${member}"`)),
  ).toEqual([]);
});

const sources = packages.flatMap(sourcesOf);
const declaration = /^export type (\w+Code) =([^;]+);/gm;
const declared = sources.flatMap((text) => [...text.matchAll(declaration)]);
const written = declared.flatMap(([, , members = ""]) =>
  [...members.matchAll(/"([a-z0-9-]+)"/g)].map(([, code = ""]) => code),
);
// One union is the keys of a table.
const codes = [...written, ...Object.keys(serviceStatuses)];

test.each(packages)("the tables of codes in the page of %s have no code that no union has", (name) => {
  const tables = [...packagePage(name).matchAll(/^\| *code *\|.*\n\|[-| ]+\n((?:\|.*\n)+)/gim)];
  const listed = tables
    .flatMap(([, rows = ""]) => rows.split("\n"))
    .flatMap((row) => namesIn(row.split("|")[1]));
  expect(listed.filter((code) => !codes.includes(code))).toEqual([]);
});

test("each GuardError is made with a union of codes", () => {
  const made = sources.flatMap((text) =>
    [...text.matchAll(/new GuardError\b(?:<(\w+)>)?/g)].map(([, union]) => union),
  );
  const names = new Set<string | undefined>(declared.map(([, name]) => name));
  expect(made.length).toBeGreaterThan(0);
  expect(made.filter((union) => !names.has(union))).toEqual([]);
});

// Whole, or as the end of a template such as `credentials-${reason}`.
test("each code of a union is used somewhere", () => {
  const code = sources.map((text) => text.replaceAll(declaration, "")).join("\n");
  const prefixes = [...code.matchAll(/`([a-z-]+-)\$\{\w+\}`/g)].map(([, prefix = ""]) => prefix);
  const isUsed = (name: string): boolean =>
    code.includes(`"${name}"`) ||
    prefixes.some((prefix) => name.startsWith(prefix) && code.includes(`"${name.slice(prefix.length)}"`));
  expect(codes.filter((name) => !isUsed(name))).toEqual([]);
});
