// Each row of docs/not-supported.md that a program can try.
import { generateKeyPairSync } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import { isPostgres } from "@countersign/store-sql/internal";
import { expect, test } from "@jest/globals";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { allCodes } from "../../packages/tools/cli/dist/explain/codes.js";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const page = readFileSync(join(root, "docs/not-supported.md"), "utf8");
const rowOf = (text: string): string =>
  page.split(/^- /m).find((entry) => entry.startsWith(`**${text}`)) ?? "";
const curve = (namedCurve: string) => generateKeyPairSync("ec", { namedCurve }).publicKey;
const nonces = memoryNonceStore();

test.each([
  ["P-521", curve("P-521")],
  ["secp256k1", curve("secp256k1")],
  ["Ed448", generateKeyPairSync("ed448").publicKey],
])("a key of %s is refused at the start, also by a policy that takes every algorithm", (name, key) => {
  expect(rowOf("P-521")).toContain(name);
  const algorithms = ["ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-pss-sha512"] as const;
  expect(() => httpSignatureVerify({ keys: { key }, nonces, algorithms })).toThrow(TypeError);
});

test("a policy may take P-256, P-384 and RSA, and the payout endpoint takes none of them", () => {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const rsa = { ...publicKey.export({ format: "jwk" }), alg: "RS256" };
  for (const [key, algorithm] of [
    [curve("P-256"), "ecdsa-p256-sha256"],
    [curve("P-384"), "ecdsa-p384-sha384"],
    [rsa, "rsa-v1_5-sha256"],
  ] as const) {
    const keys = { key };
    expect(() => httpSignatureVerify({ keys, nonces, algorithms: [algorithm] })).not.toThrow();
    const addresses = { allow: ["192.0.2.10"] };
    const idempotency = { store: memoryIdempotencyStore() };
    expect(() => payoutEndpoint({ addresses, signature: { keys, nonces }, idempotency })).toThrow(TypeError);
  }
});

// What they do is in the tests of their packages and in the adapters' tables.
test.each([
  ["`v1a`", "payload-signature-malformed"],
  ["JWT", "signature-missing"],
  ["JWT", "credentials-malformed"],
  ["Signatures of older drafts", "signature-missing"],
  ["Compressed bodies", "415 `content-encoding-unsupported`"],
])("the row %s says %s, a code that there is", (row, code) => {
  expect(rowOf(row)).toContain(code);
  expect(allCodes().has(code.replaceAll(/^\d+ |`/g, ""))).toBe(true);
});

test("the store on MySQL and MariaDB uses no RETURNING, which MySQL has not, and names what it refuses", () => {
  const folder = join(root, "packages/stores/store-sql/src/mysql");
  const sources = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  expect(sources.filter((text) => /RETURNING|ROW AS new|VALUES\(\w+\)/.test(text))).toEqual([]);
  expect(sources.some((text) => text.includes("TiDB|Vitess"))).toBe(true);
  expect(rowOf("MySQL 5.7")).toContain("TiDB, Vitess");
});

test.each([
  ["CockroachDB", "CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu, built 2025/06/04 15:29:58, go1.23.7)"],
  ["YugabyteDB", "PostgreSQL 15.2-YB-2.25.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit"],
])("the store on PostgreSQL does not take %s for PostgreSQL", (name, version) => {
  expect(rowOf("Servers that only speak PostgreSQL's protocol")).toContain(name);
  expect(isPostgres(version)).toBe(false);
});

test("no package reads events of Lambda, or stores keys in MySQL by another store than this", () => {
  const dependencies = [...workspacePackages.values()].flatMap(({ manifest }) =>
    Object.keys({ ...(manifest["dependencies"] as object), ...(manifest["peerDependencies"] as object) }),
  );
  expect(dependencies.length).toBeGreaterThan(workspacePackages.size);
  expect(dependencies.filter((name) => /lambda/i.test(name))).toEqual([]);
  // The driver of the command.
  expect(new Set(dependencies.filter((name) => /mysql|mariadb/i.test(name)))).toEqual(new Set(["mysql2"]));
});
