import { describe, expect, test } from "@jest/globals";
import {
  importVerificationKey,
  readSignature,
  verifySignatureAsync,
  type KeyValidity,
} from "@countersign/http-message-signatures";
import type { KeyContext } from "../dist/verification-key.js";
import { now, profile, publicKey, signedRequest } from "./hand-signer.ts";

const jwk = publicKey.export({ format: "jwk" });

const rows: [string, string, KeyValidity, KeyContext][] = [
  ["a key without limits", "accepted", {}, {}],
  ["a key whose validity begins and ends at created", "accepted", { notBefore: now, notAfter: now }, {}],
  ["a key that begins later", "key-retired", { notBefore: now + 1 }, {}],
  ["a key that has ended", "key-retired", { notAfter: now - 1 }, {}],
  ["a retired key", "key-retired", { retired: true }, {}],
  ["a key that is revoked later", "accepted", { revokedAt: now + 1 }, {}],
  ["a key that is revoked at this second", "key-revoked", { revokedAt: now }, {}],
  ["a key that was revoked after created", "key-revoked", { revokedAt: now + 1 }, { now: now + 1 }],
  [
    "a key that is revoked before created, by a clock ahead",
    "key-revoked",
    { revokedAt: now },
    { now: now - 1 },
  ],
  ["a clock that gives no number", "key-revoked", { revokedAt: now + 9 }, { now: Number.NaN }],
  ["the path of the scope", "accepted", { scope: { paths: ["/other", "/api/v1/transaction"] } }, {}],
  ["a path below the scope", "accepted", { scope: { paths: ["/api/"] } }, {}],
  ["another path", "key-scope", { scope: { paths: ["/api/v1/refund"] } }, {}],
  ["the beginning of a path without a slash", "key-scope", { scope: { paths: ["/api/v1/trans"] } }, {}],
  ["a directory of that name", "key-scope", { scope: { paths: ["/api/v1/transaction/"] } }, {}],
  ["another case of the path", "key-scope", { scope: { paths: ["/API/"] } }, {}],
  ["the environment", "accepted", { scope: { environment: "live" } }, { environment: "live" }],
  ["another environment", "key-scope", { scope: { environment: "test" } }, { environment: "live" }],
  ["a verifier without environment", "key-scope", { scope: { environment: "test" } }, {}],
  [
    "a verifier with one, and a key without",
    "accepted",
    { scope: { paths: ["/"] } },
    { environment: "live" },
  ],
  [
    "the environment, but another path",
    "key-scope",
    { scope: { environment: "live", paths: ["/x"] } },
    { environment: "live" },
  ],
];

describe("the validity of a key", () => {
  test.each(rows)("%s: %s", async (_title, verdict, validity, context) => {
    const key = importVerificationKey("test-key", publicKey, validity);
    const received = readSignature(signedRequest(), profile);
    const outcome = verifySignatureAsync(received, key, { now, ...context });
    if (verdict === "accepted") await expect(outcome).resolves.toBeUndefined();
    else await expect(outcome).rejects.toMatchObject({ code: verdict });
  });

  test("takes the system clock when it is told no time", async () => {
    const received = readSignature(signedRequest(), profile);
    const past = importVerificationKey("test-key", publicKey, { revokedAt: now - 600_000_000 });
    await expect(verifySignatureAsync(received, past)).rejects.toMatchObject({ code: "key-revoked" });
  });

  test.each<[string, Record<string, unknown>]>([
    ["notBefore of another type", { notBefore: "1800000000" }],
    ["notBefore with a fraction", { notBefore: 0.5 }],
    ["notBefore below zero", { notBefore: -1 }],
    ["notAfter as a Date", { notAfter: new Date() }],
    ["notAfter that is NaN", { notAfter: Number.NaN }],
    ["notAfter before notBefore", { notBefore: 2, notAfter: 1 }],
    ["retired as text", { retired: "true" }],
    ["retired as null", { retired: null }],
    ["a misspelt member", { notAftre: 1 }],
    ["revokedAt as text", { revokedAt: "1800000000" }],
    ["revokedAt in milliseconds", { revokedAt: 1_800_000_000_000 }],
    ["revokedAt as null", { revokedAt: null }],
    ["an empty subject", { subject: "" }],
    ["a subject with a line feed", { subject: "a\nb" }],
    ["a subject of a lone surrogate", { subject: "\ud800" }],
    ["a subject that is too long", { subject: "s".repeat(257) }],
    ["an empty scope", { scope: {} }],
    ["a scope that is a list", { scope: ["/api/"] }],
    ["a scope with a misspelt member", { scope: { path: ["/api/"] } }],
    ["a scope without a path", { scope: { paths: [] } }],
    ["a scope whose path is text alone", { scope: { paths: "/api/" } }],
    ["a path without a slash", { scope: { paths: ["api"] } }],
    ["a path with a query", { scope: { paths: ["/api?x"] } }],
    ["a path beyond ASCII", { scope: { paths: ["/é"] } }],
    ["a list with a hole", { scope: { paths: [, "/api/"] } }], // oxlint-disable-line no-sparse-arrays -- what is tested
    ["an empty environment", { scope: { environment: "" } }],
  ])("throws on %s", (_title, validity) => {
    expect(() => importVerificationKey("k1", publicKey, validity)).toThrow(/^importVerificationKey: /);
  });

  test("keeps the times that are given", () => {
    const validity = { notBefore: 1, notAfter: 1, retired: true };
    expect(importVerificationKey("k1", publicKey, validity)).toMatchObject(validity);
  });

  test("is kept as it was given, and cannot be changed later", () => {
    const paths = ["/api/"];
    const key = importVerificationKey("k1", publicKey, { scope: { paths }, subject: "tenant-é" });
    paths.push("/");
    expect(key).toMatchObject({ scope: { paths: ["/api/"] }, subject: "tenant-é" });
    expect(Object.isFrozen(key.scope)).toBe(true);
    expect(Object.isFrozen(key.scope?.paths)).toBe(true);
  });
});

describe("what a JWK states of its validity", () => {
  test.each<[string, Record<string, unknown>, KeyValidity, KeyValidity]>([
    ["nbf and exp", { nbf: 5, exp: 9 }, {}, { notBefore: 5, notAfter: 9 }],
    [
      "a wider nbf and exp than given",
      { nbf: 5, exp: 9 },
      { notBefore: 6, notAfter: 8 },
      { notBefore: 6, notAfter: 8 },
    ],
    [
      "a narrower nbf and exp",
      { nbf: 5, exp: 9 },
      { notBefore: 1, notAfter: 20 },
      { notBefore: 5, notAfter: 9 },
    ],
    ["revoked", { revoked: { revoked_at: 7, reason: "compromised" } }, {}, { revokedAt: 7 }],
    ["revoked at no known time", { revoked: {} }, {}, { revokedAt: 0 }],
    ["revoked as something else", { revoked: true }, {}, { revokedAt: 0 }],
  ])("%s", (_title, members, given, validity) => {
    for (const input of [{ ...jwk, ...members }, JSON.stringify({ ...jwk, ...members })]) {
      expect(importVerificationKey("k1", input, given)).toMatchObject(validity);
    }
    const bytes = Buffer.from(JSON.stringify({ ...jwk, ...members }));
    expect(importVerificationKey("k1", bytes, given)).toMatchObject(validity);
  });

  test("of a set, the narrowest of those that the keyid may mean", () => {
    const keys = [
      { ...jwk, kid: "k1", exp: 9 },
      { ...jwk, kid: "k2", exp: 1 },
    ];
    expect(importVerificationKey("k1", { keys })).toMatchObject({ notAfter: 9 });
  });

  test.each<[string, Record<string, unknown>]>([
    ["nbf as text", { nbf: "5" }],
    ["exp with a fraction", { exp: 5.5 }],
    ["exp before nbf", { nbf: 5, exp: 4 }],
    ["revoked_at as text", { revoked: { revoked_at: "5" } }],
  ])("throws on %s", (_title, members) => {
    expect(() => importVerificationKey("k1", { ...jwk, ...members })).toThrow(TypeError);
  });
});
