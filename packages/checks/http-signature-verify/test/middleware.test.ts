import { createPublicKey } from "node:crypto";
import { afterEach, describe, expect, test } from "@jest/globals";
import { contentDigest, hasVerifiedContentDigest } from "@countersign/content-digest";
import { guardErrors } from "@countersign/express";
import {
  httpSignatureVerify,
  importVerificationKey,
  memoryNonceStore,
  verifiedSignature,
  type NonceStore,
} from "@countersign/http-signature-verify";
import type { NonceClaim } from "@countersign/core";
import { capturedRawBody, captureRawBody, rawBody } from "@countersign/raw-body";
import express from "express";
import {
  samplePath,
  sha256Field,
  signRequest,
  withHeader,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import { serviceKey, servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { defaults, observe, startPlatform, type Platform, expressVersions } from "./platform.ts";

let platform: Platform;
afterEach(() => platform.close());

const status = async (plan: SigningPlan = {}): Promise<number> =>
  (await platform.send(signRequest(plan))).status;

describe.each(expressVersions)("httpSignatureVerify on %s", (_name, framework) => {
  test("lets a request of an independent signer pass and says who signed it", async () => {
    platform = await startPlatform(framework);
    const created = Math.floor(Date.now() / 1000);
    expect(await status({ created, nonce: "once", label: "any-label" })).toBe(200);
    const [req] = platform.reached;
    expect(req?.signature).toEqual({
      label: "any-label",
      keyid: "test-key",
      alg: "ed25519",
      created,
      expires: created + 60,
      nonce: "once",
      components: ["@method", "@path", "content-type", "content-digest"],
    });
    expect(verifiedSignature(req as never)).toEqual(req?.signature);
    expect(Object.isFrozen(verifiedSignature(req as never))).toBe(true);
    expect(req?.rawBody?.toString()).toBe('{"amount":{"value":"10.00"}}');
  });

  test.each<[string, (app: express.Express) => void]>([
    ["rawBody", (app) => app.use(rawBody())],
    ["rawBody and contentDigest", (app) => app.use(rawBody(), contentDigest())],
    ["express.json with captureRawBody", (app) => app.use(framework.json({ verify: captureRawBody }))],
    ["express.raw", (app) => app.use(framework.raw({ type: "*/*" }))],
    ["itself", (app) => app.use(httpSignatureVerify({ ...defaults(), nonces: shared }))],
  ])("works behind %s", async (_title, prepare) => {
    platform = await startPlatform(framework, { nonces: shared }, prepare);
    expect(await status()).toBe(200);
    expect(hasVerifiedContentDigest(platform.reached[0] as never)).toBe(true);
  });

  test("says clearly that a parser has consumed the body before", async () => {
    platform = await startPlatform(framework, {}, (app) => app.use(framework.json()));
    expect(await status()).toBe(500);
    expect(platform.codes).toEqual(["body-already-consumed"]);
  });

  test("verifies the whole path in a mounted router", async () => {
    const app = framework();
    const router = framework.Router();
    router.post("/transaction", httpSignatureVerify(defaults()), (_req, res) => void res.json({}));
    app.use("/api/v1", router);
    app.use(guardErrors());
    platform = await observe(app);
    expect(await status()).toBe(200);
  });

  test("lets one of many concurrent requests with one nonce pass", async () => {
    platform = await startPlatform(framework);
    const signed = signRequest();
    const answers = await Promise.all(Array.from({ length: 20 }, () => platform.send(signed)));
    expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1);
    expect(platform.codes).toEqual(Array.from({ length: 19 }, () => "nonce-replayed"));
  });
});

const shared = memoryNonceStore();

describe("the order of parameters and components", () => {
  test("accepts further computable components and a foreign label", async () => {
    platform = await startPlatform();
    const signed = signRequest({
      path: `${samplePath}?a=1`,
      body: "{}",
      covered: [
        ['"@method"', "POST"],
        ['"@authority"', `127.0.0.1:${platform.port}`],
        ['"@scheme"', "http"],
        ['"@path"', samplePath],
        ['"@query"', "?a=1"],
        ['"@request-target"', `${samplePath}?a=1`],
        ['"@target-uri"', `http://127.0.0.1:${platform.port}${samplePath}?a=1`],
        ['"content-type"', "application/json"],
        ['"content-digest"', sha256Field(Buffer.from("{}"))],
      ],
    });
    const headers = withHeader(
      signed.headers,
      "signature-input",
      (value) => `${value}, proxy=("@method");keyid="p"`,
    );
    expect((await platform.send({ ...signed, headers })).status).toBe(200);
  });

  test("computes scheme and authority from the configured origin", async () => {
    platform = await startPlatform(express, { origin: "https://pay.example" });
    const covered = [
      ['"@method"', "POST"],
      ['"@target-uri"', `https://pay.example${samplePath}`],
      ['"@path"', samplePath],
      ['"content-type"', "application/json"],
      ['"content-digest"', sha256Field(Buffer.from("{}"))],
    ] as const;
    expect(await status({ covered, body: "{}" })).toBe(200);
  });
});

describe("the body", () => {
  test.each([
    ["pretty-printed JSON", '{\n  "a" : 1\n}\n'],
    ["escapes", String.raw`{"a":"\u00fc"}`],
    ["a byte order mark", "\ufeff{}"],
    ["emoji", '{"a":"\u{1f4b6}"}'],
    ["CRLF", '{\r\n"a":1}'],
    ["no byte at all", ""],
  ])("verifies %s unchanged", async (_title, body) => {
    platform = await startPlatform();
    expect(await status({ body })).toBe(200);
  });

  test("answers 415 for an encoded body and 413 for one over the limit", async () => {
    platform = await startPlatform(express, { limit: 100 });
    const signed = signRequest();
    const encoded = await platform.send({
      ...signed,
      headers: [...signed.headers, "Content-Encoding", "gzip"],
    });
    expect(encoded.status).toBe(415);
    expect(await status({ body: "x".repeat(101) })).toBe(413);
    expect(await status({ body: "x".repeat(100) })).toBe(200);
  });

  test("refuses a body that a custom set of components leaves out", async () => {
    const requiredComponents = ["@method", "@path"];
    platform = await startPlatform(express, { requiredComponents });
    const covered = [
      ['"@method"', "POST"],
      ['"@path"', samplePath],
    ] as const;
    expect(await status({ covered, body: "{}" })).toBe(401);
    expect(platform.codes).toEqual(["body-not-covered"]);
    expect(await status({ covered, body: "" })).toBe(200);
  });
});

describe("the request target", () => {
  test("lets an unsigned query pass only with allowUnsignedQuery", async () => {
    platform = await startPlatform(express, { allowUnsignedQuery: true });
    expect(await status({ path: `${samplePath}?trace=1` })).toBe(200);
  });

  test("puts the configured prefix before the path", async () => {
    platform = await startPlatform(express, { pathPrefix: "/payments" });
    const signed = signRequest({ path: `/payments${samplePath}` });
    expect((await platform.send({ ...signed, path: samplePath })).status).toBe(200);
    expect(await status()).toBe(401);
  });

  test("refuses a method that another middleware replaced", async () => {
    platform = await startPlatform(express, {}, (app) =>
      app.use((req, _res, next) => {
        Object.assign(req, { originalMethod: req.method, method: "PUT" });
        next();
      }),
    );
    const answer = await platform.send({ ...signRequest({ method: "PUT" }), method: "POST" });
    expect(answer.status).toBe(401);
    expect(platform.codes).toEqual(["method-override"]);
  });
});

describe("the clock", () => {
  const created = 1_700_000_000;
  const at = async (seconds: number): Promise<void> => {
    platform = await startPlatform(express, { clock: () => seconds * 1000 });
  };

  test.each([
    ["at created minus the skew", created - 30, 200],
    ["before created minus the skew", created - 30.001, 401],
    ["at expires", created + 60, 200],
    ["after expires", created + 60.001, 401],
  ])("decides exactly %s", async (_title, now, expected) => {
    await at(now);
    expect(await status({ created })).toBe(expected);
  });

  test("refuses when the clock gives no number", async () => {
    await at(Number.NaN);
    expect(await status()).toBe(401);
  });

  test.each<[string, number]>([
    ["the key store", 2],
    ["reading the body", 3],
    ["the nonce store", 4],
  ])("is read again after %s", async (_title, call) => {
    let calls = 0;
    const clock = (): number => (++calls >= call ? created + 61 : created) * 1000;
    platform = await startPlatform(express, { clock });
    expect(await status({ created })).toBe(401);
    expect(platform.codes).toEqual(["signature-expired"]);
  });

  test("is read again after a nonce store that answers late", async () => {
    let now = created;
    const nonces: NonceStore = {
      claim: () => {
        now = created + 61;
        return "fresh";
      },
    };
    platform = await startPlatform(express, { clock: () => now * 1000, nonces });
    expect(await status({ created })).toBe(401);
    expect(platform.codes).toEqual(["signature-expired"]);
  });
});

describe("keys", () => {
  test.each<[string, Parameters<typeof startPlatform>[1], number, string | undefined]>([
    ["a Map", { keys: new Map([["test-key", servicePublicPem]]) }, 200, undefined],
    ["a function", { keys: (keyid) => importVerificationKey(keyid, servicePublicPem) }, 200, undefined],
    ["a function that finds a PEM", { keys: () => servicePublicPem }, 200, undefined],
    [
      "a KeyStore that finds a JWK",
      { keys: { get: async () => createPublicKey(servicePublicPem).export({ format: "jwk" }) } },
      200,
      undefined,
    ],
    [
      "a function that finds a private key",
      { keys: () => serviceKey.export({ type: "pkcs8", format: "pem" }).toString() },
      503,
      "key-unusable",
    ],
    [
      "a KeyStore",
      { keys: { get: async (keyid) => importVerificationKey(keyid, servicePublicPem) } },
      200,
      undefined,
    ],
    ["a function that finds nothing", { keys: () => undefined }, 401, "key-unknown"],
    ["a store that throws", { keys: () => fail() }, 503, "key-store-unavailable"],
    ["a store that rejects", { keys: async () => fail() }, 503, "key-store-unavailable"],
    [
      "a store that hangs",
      { keys: () => new Promise(() => {}), storeTimeoutMs: 20 },
      503,
      "key-store-unavailable",
    ],
    ["a key that was not imported", { keys: () => ({ keyid: "test-key" }) }, 503, "key-unusable"],
  ])("handles %s", async (_title, options, expected, code) => {
    platform = await startPlatform(express, options);
    const answer = await platform.send(signRequest());
    expect(answer.status).toBe(expected);
    expect(answer.headers["retry-after"]).toBe(expected === 503 ? "5" : undefined);
    expect(platform.codes).toEqual(code === undefined ? [] : [code]);
  });
});

describe("nonces", () => {
  const recording = (claims: NonceClaim[]): NonceStore => ({
    claim: (claim) => (claims.push(claim), "fresh"),
  });

  test("are not used up by a request whose signature or body is wrong", async () => {
    const claims: NonceClaim[] = [];
    platform = await startPlatform(express, { nonces: recording(claims) });
    await platform.send({ ...signRequest(), method: "PUT" });
    await platform.send({ ...signRequest(), body: Buffer.from("x") });
    expect(claims).toEqual([]);
  });

  test("are remembered under the keyid for longer than the signature can be accepted", async () => {
    const claims: NonceClaim[] = [];
    const created = 1_700_000_000;
    platform = await startPlatform(express, { nonces: recording(claims), clock: () => created * 1000 });
    await status({ created, nonce: "n-1" });
    expect(claims).toEqual([
      { scope: "test-key", nonce: "n-1", token: expect.any(String), retainMs: 150_000 },
    ]);
  });

  test("are independent under another keyid", async () => {
    platform = await startPlatform(express, {
      keys: { "test-key": servicePublicPem, other: servicePublicPem },
    });
    expect(await status({ nonce: "same" })).toBe(200);
    expect(await status({ nonce: "same", keyid: "other" })).toBe(200);
    expect(await status({ nonce: "same" })).toBe(401);
  });

  test("are refused in the last second of validity and right after it", async () => {
    const created = 1_700_000_000;
    let seconds = created;
    const now = (): number => seconds * 1000;
    platform = await startPlatform(express, { nonces: memoryNonceStore({ now }), clock: now });
    const signed = signRequest({ created });
    expect((await platform.send(signed)).status).toBe(200);
    for (seconds of [created + 59.999, created + 60, created + 60.001]) {
      expect((await platform.send(signed)).status).toBe(401);
    }
    expect(platform.codes).toEqual(["nonce-replayed", "nonce-replayed", "signature-expired"]);
  });

  test.each<[string, NonceStore]>([
    ["throws", { claim: () => fail() }],
    ["rejects", { claim: async () => fail() }],
    ["hangs", { claim: () => new Promise(() => {}) }],
  ])("answer 503 when the store %s", async (_title, nonces) => {
    platform = await startPlatform(express, { nonces, storeTimeoutMs: 20 });
    expect(await status()).toBe(503);
    expect(platform.codes).toEqual(["nonce-store-unavailable"]);
    expect(platform.reached).toEqual([]);
  });

  test("answer 401 when the store says anything but fresh", async () => {
    platform = await startPlatform(express, { nonces: { claim: () => undefined as never } });
    expect(await status()).toBe(401);
  });
});

describe("a request without signature headers", () => {
  test("is refused before its body is read", async () => {
    platform = await startPlatform();
    let seen: express.Request | undefined;
    const app = express();
    app.use((req, _res, next) => {
      seen = req;
      next();
    });
    app.use(httpSignatureVerify(defaults()), guardErrors());
    await platform.close();
    platform = await observe(app);
    expect((await platform.send({ ...signRequest(), headers: [] })).status).toBe(401);
    expect(capturedRawBody(seen as never)).toBeUndefined();
  });
});

function fail(): never {
  throw new Error("out of order");
}
