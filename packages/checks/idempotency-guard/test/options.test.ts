import { captureRawBody } from "@countersign/raw-body";
import { createHash } from "node:crypto";
import { afterEach, describe, expect, test } from "@jest/globals";
import express from "express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, type IdempotencyGuardOptions } from "@countersign/idempotency-guard";
import { guardErrors, type GuardRequest } from "@countersign/express";
import { bodyFingerprint, checkIdempotencyKey } from "../src/check.ts";
import { closePlatforms, faultyStore, listen, platform } from "./kit.ts";

afterEach(closePlatforms);

const store = memoryIdempotencyStore();
const key = (): string => "k";

describe("idempotencyGuard", () => {
  test.each<{ name: string; options: unknown; message: string }>([
    { name: "no options", options: undefined, message: "options must be an object" },
    { name: "an unknown option", options: { store, key, lease: 5 }, message: "unknown option lease" },
    { name: "no store", options: { key }, message: "option store must be an IdempotencyStore" },
    {
      name: "all stores in place of one",
      options: { store: { idempotency: store, nonces: {} }, key },
      message: "option store is given all stores: give it their .idempotency",
    },
    {
      name: "a store without read",
      options: { store: { ...faultyStore(), read: undefined }, key },
      message: "store.read",
    },
    {
      name: "a completeIn that is no function",
      options: { store: { ...faultyStore(), completeIn: 5 }, key },
      message: "store.completeIn",
    },
    { name: "no key", options: { store }, message: "option key must be a function" },
    {
      name: "a fingerprint that is no function",
      options: { store, key, fingerprint: "f" },
      message: "fingerprint",
    },
    { name: "a recovery by another name", options: { store, key, recovery: "retry" }, message: "recovery" },
    { name: "another reusedStatus", options: { store, key, reusedStatus: 400 }, message: "reusedStatus" },
    { name: "a short lease", options: { store, key, leaseMs: 999 }, message: "option leaseMs" },
    { name: "a negative wait", options: { store, key, waitMs: -1 }, message: "option waitMs" },
    { name: "a wait as text", options: { store, key, waitMs: "2000" }, message: "option waitMs" },
    { name: "pollMs 0", options: { store, key, pollMs: 0 }, message: "option pollMs" },
    {
      name: "storeTimeoutMs 0",
      options: { store, key, storeTimeoutMs: 0 },
      message: "option storeTimeoutMs",
    },
    {
      name: "a store time-out as long as the lease",
      options: { store, key, leaseMs: 1_000, storeTimeoutMs: 1_000 },
      message: "option storeTimeoutMs must be below leaseMs (1000)",
    },
    { name: "handlerTimeoutMs 0", options: { store, key, handlerTimeoutMs: 0 }, message: "handlerTimeoutMs" },
    { name: "negative maxWaiters", options: { store, key, maxWaiters: -1 }, message: "maxWaiters" },
    {
      name: "retryAfterSeconds 0",
      options: { store, key, retryAfterSeconds: 0 },
      message: "retryAfterSeconds",
    },
    {
      name: "heldRetryAfterSeconds 0",
      options: { store, key, heldRetryAfterSeconds: 0 },
      message: "heldRetryAfterSeconds",
    },
  ])("refuses $name when it is built", ({ options, message }) => {
    const build = (): unknown => idempotencyGuard(options as IdempotencyGuardOptions);
    expect(build).toThrow(TypeError);
    expect(build).toThrow(`idempotencyGuard: `);
    expect(build).toThrow(message);
  });

  test.each<{ name: string; value: unknown; code: string }>([
    { name: "undefined", value: undefined, code: "idempotency-key-missing" },
    { name: "null", value: null, code: "idempotency-key-missing" },
    { name: "empty", value: "", code: "idempotency-key-missing" },
    { name: "a number", value: 5, code: "idempotency-key-invalid" },
    { name: "a list", value: ["k"], code: "idempotency-key-invalid" },
    { name: "an object with a toString", value: { toString: () => "k" }, code: "idempotency-key-invalid" },
    { name: "513 characters", value: "k".repeat(513), code: "idempotency-key-invalid" },
    { name: "a lone high surrogate", value: "k\ud800", code: "idempotency-key-invalid" },
    { name: "a lone low surrogate", value: "\udc00k", code: "idempotency-key-invalid" },
    { name: "a zero-width space", value: "k\u200b", code: "idempotency-key-invalid" },
    { name: "a soft hyphen", value: "k\u00ad", code: "idempotency-key-invalid" },
    { name: "an unassigned character", value: "k\u0378", code: "idempotency-key-invalid" },
    { name: "a text that is not in NFC", value: "u\u0308", code: "idempotency-key-invalid" },
    { name: "a NUL", value: "k\u0000", code: "idempotency-key-invalid" },
    { name: "a line break", value: "k\n", code: "idempotency-key-invalid" },
  ])("refuses a key that is $name", ({ value, code }) => {
    expect(() => checkIdempotencyKey(value)).toThrow(expect.objectContaining({ status: 400, code }));
  });

  test.each([
    { value: "k" },
    { value: "op.a.b" },
    { value: "__proto__" },
    { value: "😀" },
    { value: "k".repeat(512) },
  ])("takes the key $value as it is", ({ value }) => {
    expect(checkIdempotencyKey(value)).toBe(value);
  });

  test("says that a key may be no promise", () => {
    expect(() => checkIdempotencyKey(Promise.resolve("k"))).toThrow(TypeError);
  });
});

describe("the default fingerprint", () => {
  const fingerprintOf = (rawBody: unknown): string => bodyFingerprint({ rawBody });
  const captured = (bytes: Buffer): GuardRequest => {
    const req = { headers: {}, rawHeaders: [] } as unknown as GuardRequest;
    captureRawBody(req, undefined, bytes);
    return req;
  };

  test("is the SHA-256 of the bytes as received", () => {
    const bytes = Buffer.from('{"amount":1}');
    const fingerprint = bodyFingerprint(captured(bytes));
    expect(fingerprint).toBe(createHash("sha256").update(bytes).digest("base64url"));
    expect(fingerprint).not.toBe(bodyFingerprint(captured(Buffer.from('{"amount": 1}'))));
  });

  test("is not of what another middleware wrote to req.rawBody", () => {
    const req = captured(Buffer.from('{"amount":1}'));
    const before = bodyFingerprint(req);
    req.rawBody = Buffer.from('{"amount":1000}');
    expect(bodyFingerprint(req)).toBe(before);
  });

  test.each<{ name: string; rawBody: unknown }>([
    { name: "no body", rawBody: undefined },
    { name: "bytes that no guard captured", rawBody: Buffer.from("{}") },
    { name: "a body as text", rawBody: "{}" },
    { name: "a parsed body", rawBody: {} },
    { name: "an empty body", rawBody: Buffer.alloc(0) },
  ])("refuses $name as a configuration error", ({ rawBody }) => {
    expect(() => fingerprintOf(rawBody)).toThrow(
      expect.objectContaining({
        status: 500,
        code: "fingerprint-missing",
        message: expect.stringContaining("rawBody()"),
      }),
    );
  });

  test("is needed: without captured bytes the handler does not run", async () => {
    let runs = 0;
    const app = express();
    app.use(express.json());
    app.post("/pay", idempotencyGuard({ store: memoryIdempotencyStore(), key }), (_req, res) => {
      runs += 1;
      res.end();
    });
    app.use(guardErrors());
    const running = await listen(app);
    expect((await running.pay()).status).toBe(500);
    expect(runs).toBe(0);
  });
});

describe("the option fingerprint", () => {
  test.each([
    { name: "synchronous", fingerprint: (req: GuardRequest) => `v1:${JSON.stringify(req.body)}` },
    {
      name: "asynchronous",
      fingerprint: (req: GuardRequest) => Promise.resolve(`v1:${JSON.stringify(req.body)}`),
    },
  ])("decides what is the same payload when $name", async ({ fingerprint }) => {
    const app = await platform(express, { fingerprint }, (_req, res) => res.json({}));
    expect((await app.pay({ body: '{"amount":1}' })).status).toBe(200);
    expect(await app.pay({ body: '{ "amount": 1 }' })).toMatchObject({ code: "already-processed" });
    expect(await app.pay({ body: '{"amount":2}' })).toMatchObject({ code: "idempotency-key-reused" });
  });

  test.each<{ name: string; fingerprint: () => unknown }>([
    { name: "nothing", fingerprint: () => undefined },
    { name: "an empty text", fingerprint: () => "" },
    { name: "too much", fingerprint: () => "f".repeat(129) },
    { name: "a promise of nothing", fingerprint: () => Promise.resolve() },
    { name: "text outside ASCII", fingerprint: () => "ä" },
    { name: "a rejection", fingerprint: () => Promise.reject(new Error("no")) },
    {
      name: "a throw",
      fingerprint: () => {
        throw new Error("no");
      },
    },
  ])("answers 500 and claims nothing when it gives $name", async ({ fingerprint }) => {
    const faulty = faultyStore();
    const app = await platform(
      express,
      { store: faulty, fingerprint: fingerprint as () => string },
      (_req, res) => res.end(),
    );
    expect((await app.pay()).status).toBe(500);
    expect(faulty.calls.claim).toBe(0);
  });

  test("answers 503 and claims nothing when it never comes, and runs the retry", async () => {
    const faulty = faultyStore();
    let asked = 0;
    const fingerprint = (): Promise<string> => {
      asked += 1;
      return asked === 1 ? new Promise(() => {}) : Promise.resolve("v1");
    };
    const options = { store: faulty, fingerprint, storeTimeoutMs: 30, retryAfterSeconds: 7 };
    const app = await platform(express, options, (_req, res) => res.end());
    expect(await app.pay()).toMatchObject({ status: 503, headers: { "retry-after": "7" } });
    expect(faulty.calls.claim).toBe(0);
    expect((await app.pay()).status).toBe(200);
  });

  test("and a key that throws end in 500 as well", async () => {
    const app = await platform(
      express,
      {
        key: () => {
          throw new Error("no");
        },
      },
      (_req, res) => res.end(),
    );
    expect((await app.pay()).status).toBe(500);
  });
});
