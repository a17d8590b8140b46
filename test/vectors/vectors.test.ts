import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { derivedComponents } from "@countersign/http-message-signatures/internal";
import { signatureAlgorithms } from "@countersign/http-message-signatures";
import { faultsOf, readVectors, type Vector } from "./check.mjs";
import { signedLine } from "./sign.mjs";

const engines = ["native", "noble", "sodium"] as const;
const files = [...readVectors()];
const vectors = files.flatMap(([, file]) => file.vectors);
const read = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");
const isValid = ({ expected }: Vector): boolean => expected.verdict === "valid";

describe.each(files)("the vectors of %s", (_name, file) => {
  test.each(engines)("come out as expected with the engine %s", (engine) => {
    const faults = file.vectors.flatMap((vector) =>
      faultsOf(vector, engine).map((fault) => `${vector.id}: ${fault}`),
    );
    expect(faults).toEqual([]);
  });
});

test("a vector that expects something else is told", () => {
  const vector = vectors.find(({ id }) => id === "receipt");
  if (vector === undefined) throw new Error("no vector receipt");
  const { expected } = vector;
  const told = (change: Partial<Vector["expected"]>): number =>
    faultsOf({ ...vector, expected: { ...expected, ...change } }, "native").length;
  expect(told({})).toBe(0);
  expect(told({ verdict: "refused" })).toBe(1);
  expect(told({ code: "signature-mismatch" })).toBe(1);
  expect(told({ bases: { sig1: "x" } })).toBe(1);
  expect(told({ bases: { sig2: "x" } })).toBe(1);
});

test("the inventory has the sum of each file", () => {
  const names = readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".json"));
  names.sort();
  const sums = names.map((name) => `${createHash("sha256").update(read(name)).digest("hex")}  ${name}\n`);
  expect(read("SHA256SUMS")).toBe(sums.join(""));
});

test("a new vector is signed by sign.mjs", () => {
  const [line = ""] = /^\{"id":"policy",.*$/m.exec(read("policies.json")) ?? [];
  const unsigned = line.replace(/sig1=:[^:]+:/, "sig1=:@ed25519:");
  expect(unsigned).not.toBe(line);
  expect(signedLine(unsigned)).toBe(line);
});

test("each vector has an id of its own and says what it shows", () => {
  expect(new Set(vectors.map(({ id }) => id)).size).toBe(vectors.length);
  expect(vectors.filter(({ shows }) => !/^\S.*\.$/.test(shows)).map(({ id }) => id)).toEqual([]);
  expect(vectors.filter(({ expected }) => isValidWithout(expected)).map(({ id }) => id)).toEqual([]);
});

function isValidWithout({ verdict, code, bases }: Vector["expected"]): boolean {
  return verdict === "valid" ? code !== undefined || bases === undefined : code === undefined;
}

test("the README has the counts of each file", () => {
  const rows = files.map(([name, { theme, count, vectors: own }]) => {
    expect(count).toBe(own.length);
    const valid = own.filter(isValid).length;
    return ["", `\`${name}\``, valid, count - valid, theme, ""].join("|");
  });
  const written = read("README.md")
    .split("\n")
    .filter((line) => line.startsWith("| `") && line.includes(".json"))
    .map((line) => line.replaceAll(/ *\| */g, "|"));
  expect(written).toEqual(rows);
  const all = vectors.filter(isValid).length;
  expect(read("README.md")).toContain(`${vectors.length} vectors, ${all} valid`);
});

test.each(signatureAlgorithms)("%s has vectors that are valid and others that are refused", (alg) => {
  const own = vectors.filter(({ policies }) => policies.some(({ algorithms }) => algorithms[0] === alg));
  expect(new Set(own.map(isValid)).size).toBe(2);
});

const signed = vectors.filter(isValid).flatMap(({ expected }) => Object.values(expected.bases ?? {}));

test.each([...derivedComponents, "@query-param", "@status"])("%s is covered by a valid vector", (name) => {
  expect(signed.some((base) => base.includes(`"${name}"`))).toBe(true);
  if (name !== "@status")
    expect(signed.some((base) => new RegExp(`"${name}"[^:]*;req`).test(base))).toBe(true);
});

test.each(["sf", "key", "bs", "tr", "req", "name"])("the parameter %s is in a valid vector", (name) => {
  expect(signed.some((base) => new RegExp(`^"[^"]+"[^:]*;${name}\\b`, "m").test(base))).toBe(true);
});
