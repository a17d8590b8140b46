import { createPublicKey, generateKeyPairSync } from "node:crypto";
import type { JwksKeysOptions } from "../dist/jwks-keys.js";
import {
  httpSignatureVerifier,
  httpSignatureVerify,
  importVerificationKey,
  jwksKeys,
  memoryNonceStore,
} from "@countersign/http-signature-verify";
import { describe, expect, test } from "@jest/globals";
import { serviceKey, servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";

const jwk = createPublicKey(serviceKey).export({ format: "jwk" });
const good = { keys: { a: servicePublicPem }, nonces: memoryNonceStore() };

// The stores that come with it have a claim() too, of other arguments.
const idempotencyStore = { claim: () => undefined, heartbeat: () => undefined };

describe("the options of httpSignatureVerify", () => {
  test.each<[string, unknown]>([
    ["options must be an object", undefined],
    ["option keys", { nonces: good.nonces }],
    ["option keys", { ...good, keys: {} }],
    ["option keys", { ...good, keys: new Map() }],
    ["option keys", { ...good, keys: [servicePublicPem] }],
    ["option keys", { ...good, keys: servicePublicPem }],
    ['option keys, keyid "a"', { ...good, keys: { a: "" } }],
    ['option keys, keyid "a"', { ...good, keys: { a: null } }],
    ['option keys, keyid "a": .*is a list; give one key', { ...good, keys: { a: [servicePublicPem] } }],
    ['option keys is a JWK or JWK Set itself; write { "<keyid>"', { ...good, keys: jwk }],
    ["option keys is a JWK or JWK Set itself", { ...good, keys: { keys: [jwk] } }],
    ['option keys, keyid "a"', { ...good, keys: { a: undefined } }],
    ['option keys, keyid "a"', { ...good, keys: { a: serviceKey } }],
    ["another keyid", { ...good, keys: { a: importVerificationKey("b", servicePublicPem) } }],
    ["option nonces", { keys: good.keys }],
    ["option nonces", { ...good, nonces: {} }],
    ["option nonces", { ...good, nonces: null }],
    ["option nonces must be a NonceStore, not an IdempotencyStore", { ...good, nonces: idempotencyStore }],
    ["option requiredComponents", { ...good, requiredComponents: [] }],
    ["option requiredComponents", { ...good, requiredComponents: ["Content-Digest"] }],
    ["option requiredComponents", { ...good, requiredComponents: ["@status"] }],
    ["option requiredComponents", { ...good, requiredComponents: "@method" }],
    ["option requiredComponents", { ...good, requiredComponents: ["host"], origin: "https://pay.example" }],
    [
      "option origin must be the origin that callers see.*where @authority is required",
      { ...good, requiredComponents: ["@authority"] },
    ],
    [
      "option origin must be .*where @target-uri is required",
      { ...good, requiredComponents: ["@method", "@target-uri"] },
    ],
    ["option engine must be", { ...good, engine: "openssl" }],
    ["option engine must be", { ...good, engine: null }],
    ["option threadPool must be", { ...good, threadPool: "yes" }],
    [
      "option threadPool must be false with the engine sodium",
      { ...good, engine: "sodium", threadPool: true },
    ],
    ["option threadPool must be false with the engine noble", { ...good, engine: "noble", threadPool: true }],
    ["option tag", { ...good, tag: "payout" }],
    ["option tag", { ...good, tag: null }],
    ["option tag must be an object with exactly one", { ...good, tag: {} }],
    ["option tag must be an object with exactly one", { ...good, tag: { require: "a", exclude: "b" } }],
    ["unknown option tag.requires; did you mean require\\? known", { ...good, tag: { requires: "a" } }],
    ["option tag.require must be", { ...good, tag: { require: "" } }],
    ["option tag.require must be", { ...good, tag: { require: [] } }],
    ["option tag.require must be", { ...good, tag: { require: ["a", ""] } }],
    ["option tag.require must be", { ...good, tag: { require: Array(2) } }],
    ["option tag.exclude must be", { ...good, tag: { exclude: null } }],
    ["option tag.exclude must be", { ...good, tag: { exclude: ["p\u00e4y"] } }],
    [
      'option keys, keyid "p256": is a key of ecdsa-p256-sha256, which option algorithms does not take',
      { ...good, keys: { p256: generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey } },
    ],
    ["option algorithms", { ...good, algorithms: [] }],
    ["option algorithms", { ...good, algorithms: ["ED25519"] }],
    ["option windowSeconds", { ...good, windowSeconds: 0 }],
    ["option windowSeconds", { ...good, windowSeconds: "60" }],
    ["option clockSkewSeconds", { ...good, clockSkewSeconds: -1 }],
    ["option pathPrefix", { ...good, pathPrefix: "payments" }],
    ["option pathPrefix", { ...good, pathPrefix: "/payments/" }],
    ["option pathPrefix", { ...good, pathPrefix: "/a/../b" }],
    ["option pathPrefix", { ...good, pathPrefix: "/" }],
    ["option origin", { ...good, origin: "pay.example" }],
    ["option origin", { ...good, origin: "https://pay.example/" }],
    ["option origin", { ...good, origin: "ftp://pay.example" }],
    ["option allowUnsignedQuery", { ...good, allowUnsignedQuery: "yes" }],
    ["option limit", { ...good, limit: "many" }],
    ["option limit", { ...good, limit: Number.NaN }],
    ["option storeTimeoutMs", { ...good, storeTimeoutMs: 0 }],
    ["option clock", { ...good, clock: 5 }],
    ["unknown option nonce", { ...good, nonce: good.nonces }],
  ])("throw a TypeError: %s (%#)", (text, options) => {
    expect(() => httpSignatureVerify(options as never)).toThrow(TypeError);
    expect(() => httpSignatureVerify(options as never)).toThrow(
      new RegExp(`^httpSignatureVerify: .*${text}`.replace(".*options", "options")),
    );
  });

  test.each([["@authority"], ["@target-uri"]])(
    "take a required %s with the origin that it is compared with",
    (name) => {
      const options = { ...good, requiredComponents: [name], origin: "https://pay.example" };
      expect(() => httpSignatureVerify(options)).not.toThrow();
    },
  );

  test.each<[option: string | undefined, options: object, text: string]>([
    ["signature.windowSeconds", { windowSeconds: 0 }, "option signature.windowSeconds must be an integer"],
    ["signature.tag.require", { tag: { require: "" } }, "option signature.tag.require must be a tag"],
    ["signature.keys", { keys: jwk }, "option signature.keys is a JWK or JWK Set itself"],
    ["signature.keys", { keys: { a: "" } }, 'option signature.keys, keyid "a": '],
    [
      "signature.origin",
      { requiredComponents: ["@authority"] },
      "option signature.origin must be the origin",
    ],
    ["signature.window", { window: 1 }, "unknown option signature.window;"],
  ])("belong to an endpoint that holds them: %s (%#)", (option, options, text) => {
    const owner = { factory: "payoutEndpoint", holder: "signature" };
    expect(() => httpSignatureVerifier({ ...good, ...options }, owner)).toThrow(
      expect.objectContaining({
        name: "TypeError",
        factory: "payoutEndpoint",
        option,
        message: expect.stringContaining(`payoutEndpoint: ${text}`),
      }),
    );
  });

  test("name the middleware after the factory", () => {
    expect(httpSignatureVerify(good).name).toBe("httpSignatureVerifyMiddleware");
  });
});

const url = "https://keys.example/jwks.json";

describe("jwksKeys", () => {
  test.each<[string, unknown, unknown]>([
    ["a URL of http", "http://keys.example/", {}],
    ["http beyond loopback, although allowed", "http://keys.example/", { allowHttpOnLoopback: true }],
    ["http on loopback, not allowed", "http://127.0.0.1/", {}],
    ["a host that looks like loopback", "http://127.0.0.1.example/", { allowHttpOnLoopback: true }],
    ["another scheme", "file:///etc/keys.json", {}],
    ["a password in the URL", "https://user:secret-word@keys.example/", {}],
    ["no URL", "keys.json", {}],
    ["nothing", undefined, {}],
    ["an unknown option", url, { ttl: 1 }],
    ["a ttl of nothing", url, { ttlSeconds: 0 }],
    ["bounds that exclude each other", url, { minTtlSeconds: 100, maxTtlSeconds: 10 }],
  ])("throws on %s", (_title, given, options) => {
    const make = (): unknown => jwksKeys(given as string, options as JwksKeysOptions);
    expect(make).toThrow(/^jwksKeys: /);
    expect(make).not.toThrow("secret-word");
  });
});
