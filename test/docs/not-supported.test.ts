// Each row of docs/not-supported.md that a program can try.
import { createHmac, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { guardErrors } from "@countersign/express";
import {
  httpSignatureVerify,
  memoryNonceStore,
  verifyHttpSignature,
} from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "@countersign/payout";
import { rawBody } from "@countersign/raw-body";
import { verifyBasicAuth } from "@countersign/webhook-basic-auth";
import { verifyPayload } from "@countersign/webhook-hmac";
import { expect, test } from "@jest/globals";
import express from "express";
import { workspacePackages } from "../../scripts/workspace.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const page = readFileSync(join(root, "docs/not-supported.md"), "utf8");
const rowOf = (text: string): string => page.split("\n").find((line) => line.startsWith(`| **${text}`)) ?? "";
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

test("v1a is not looked at: alone it is refused, beside v1 it changes nothing", () => {
  const key = Buffer.alloc(32, "test");
  const timestamp = String(Math.floor(Date.now() / 1000));
  const v1 = `v1,${createHmac("sha256", key).update(`msg_1.${timestamp}.{}`).digest("base64")}`;
  const v1a = `v1a,${Buffer.alloc(64).toString("base64")}`;
  const verify = (signature: string): number => {
    const fields = { "webhook-id": "msg_1", "webhook-timestamp": timestamp, "webhook-signature": signature };
    const secret = `whsec_${key.toString("base64")}`;
    return verifyPayload(Buffer.from("{}"), fields, [secret], { scheme: "standard-webhooks" }).secretIndex;
  };
  expect([verify(v1), verify(`${v1a} ${v1}`)]).toEqual([0, 0]);
  const code = "payload-signature-malformed";
  expect(() => verify(v1a)).toThrow(expect.objectContaining({ code, status: 401 }));
  expect(rowOf("`v1a`")).toContain(code);
});

test.each([
  ["JWT", ["Authorization", "Bearer eyJhbGciOiJFZERTQSJ9.e30.AAAA"], "signature-missing", 401],
  ["Signatures of older drafts", ["Signature", 'keyId="k",signature="AAAA"'], "signature-missing", 401],
  ["Signatures of older drafts", ["Authorization", 'Signature keyId="k"'], "signature-missing", 401],
] as const)("%s: %j is refused as %s", async (row, field, code, status) => {
  const rawHeaders = ["Host", "platform.example", "Content-Type", "application/json", ...field];
  const request = {
    method: "POST",
    target: "/",
    rawHeaders,
    scheme: "https",
    clientAddress: undefined,
  } as const;
  const keys = { key: generateKeyPairSync("ed25519").publicKey };
  const body = () => Promise.resolve(Buffer.from("{}"));
  await expect(verifyHttpSignature({ ...request, body }, { keys, nonces })).rejects.toMatchObject({
    code,
    status,
  });
  expect(rowOf(row)).toContain(code);
});

test("a compressed body is refused before it is read", async () => {
  const app = express()
    .post("/", rawBody(), (_req, res) => void res.end())
    .use(guardErrors());
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const send = (encoding: string) =>
    fetch(url, { method: "POST", headers: { "Content-Encoding": encoding }, body: "{}" });
  const [refused, taken] = [await send("gzip"), await send("identity")];
  server.close();
  expect([refused.status, taken.status]).toEqual([415, 200]);
  expect(rowOf("Compressed bodies")).toContain("415 `content-encoding-unsupported`");
});

test("a bearer token is no basic authentication", () => {
  const code = "credentials-malformed";
  expect(() => verifyBasicAuth("Bearer a.b.c", [{ username: "a", password: "b" }])).toThrow(
    expect.objectContaining({ code, status: 401 }),
  );
  expect(rowOf("JWT")).toContain(code);
});

test.each(["RETURNING", "@@in_transaction", "idle_transaction_timeout"])(
  "the store of the example on MariaDB uses %s, which MySQL 8 has not",
  (syntax) => {
    const folder = join(root, "examples/custom-store/src");
    const sources = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
    expect(sources.some((text) => text.includes(syntax))).toBe(true);
    expect(rowOf("MySQL 8")).toContain(syntax);
  },
);

test("no package reads events of Lambda, or stores keys in MySQL", () => {
  const dependencies = [...workspacePackages.values()].flatMap(({ manifest }) =>
    Object.keys({ ...(manifest["dependencies"] as object), ...(manifest["peerDependencies"] as object) }),
  );
  expect(dependencies.length).toBeGreaterThan(workspacePackages.size);
  expect(dependencies.filter((name) => /lambda|mysql|mariadb/i.test(name))).toEqual([]);
});
