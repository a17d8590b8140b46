import { captureRawBody } from "@countersign/raw-body";
import { createHash } from "node:crypto";
import { afterEach, describe, expect, test } from "@jest/globals";
import express from "express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, type IdempotencyGuardOptions } from "@countersign/idempotency-guard";
import { type GuardRequest } from "@countersign/express";
import { bodyFingerprint, checkIdempotencyKey } from "../src/request-key.ts";
import { closePlatforms, faultyStore, platform } from "./kit.ts";

afterEach(closePlatforms);

const store = memoryIdempotencyStore();
const key = (): string => "k";

describe("idempotencyGuard", () => {
  test.each<[name: string, options: object | undefined, message: string]>([
    ["no store", { store: undefined }, "option store must be an IdempotencyStore"],
    [
      "all stores in place of one",
      { store: { idempotency: store, nonces: {} } },
      "option store is given all stores: give it their .idempotency",
    ],
    ["a store without read", { store: { ...faultyStore(), read: undefined } }, "store.read"],
    ["no key", { key: undefined }, "option key must be a function"],
    ["an unknown option", { lease: 5 }, "unknown option lease"],
    ["a fingerprint that is no function", { fingerprint: "f" }, "fingerprint"],
    ["a recovery by another name", { recovery: "retry" }, "recovery"],
    ["another reusedStatus", { reusedStatus: 400 }, "reusedStatus"],
    ["a short lease", { leaseMs: 999 }, "option leaseMs"],
    ["a negative wait", { waitMs: -1 }, "option waitMs"],
    ["a wait as text", { waitMs: "2000" }, "option waitMs"],
    ["pollMs 0", { pollMs: 0 }, "option pollMs"],
    ["storeTimeoutMs 0", { storeTimeoutMs: 0 }, "option storeTimeoutMs"],
    [
      "a store time-out as long as the lease",
      { leaseMs: 1_000, storeTimeoutMs: 1_000 },
      "option storeTimeoutMs must be below leaseMs (1000)",
    ],
    ["handlerTimeoutMs 0", { handlerTimeoutMs: 0 }, "handlerTimeoutMs"],
    ["negative maxWaiters", { maxWaiters: -1 }, "maxWaiters"],
    ["retryAfterSeconds 0", { retryAfterSeconds: 0 }, "retryAfterSeconds"],
    ["heldRetryAfterSeconds 0", { heldRetryAfterSeconds: 0 }, "heldRetryAfterSeconds"],
    ["no methods", { methods: [] }, "option methods must be"],
    ["a method in lower case", { methods: ["post"] }, "option methods must be"],
    ["another doneStatus", { doneStatus: 201 }, "option doneStatus must be 409, 200 or 204"],
    ["another inFlightStatus", { inFlightStatus: 425 }, "option inFlightStatus must be 503 or 409"],
    ["a text for required", { required: "no" }, "option required must be"],
    ["no options", undefined, "options must be an object"],
  ])("refuses %s when it is built", (_name, options, message) => {
    const given = options && { store, key, ...options };
    const build = (): unknown => idempotencyGuard(given as IdempotencyGuardOptions);
    expect(build).toThrow(TypeError);
    expect(build).toThrow(`idempotencyGuard: `);
    expect(build).toThrow(message);
  });

  test.each<[name: string, value: unknown, what: string]>([
    ["undefined", undefined, "missing"],
    ["null", null, "missing"],
    ["empty", "", "missing"],
    ["a number", 5, "invalid"],
    ["a list", ["k"], "invalid"],
    ["an object with a toString", { toString: () => "k" }, "invalid"],
    ["513 characters", "k".repeat(513), "invalid"],
    ["a lone high surrogate", "k\ud800", "invalid"],
    ["a lone low surrogate", "\udc00k", "invalid"],
    ["a zero-width space", "k\u200b", "invalid"],
    ["a soft hyphen", "k\u00ad", "invalid"],
    ["an unassigned character", "k\u0378", "invalid"],
    ["a text that is not in NFC", "u\u0308", "invalid"],
    ["a NUL", "k\u0000", "invalid"],
    ["a line break", "k\n", "invalid"],
  ])("refuses a key that is %s", (_name, value, what) => {
    const refused = expect.objectContaining({ status: 400, code: `idempotency-key-${what}` });
    expect(() => checkIdempotencyKey(value)).toThrow(refused);
  });

  test.each([
    { value: "k" },
    { value: "op.a.b" },
    { value: "__proto__" },
    { value: "😀" },
    { value: "k".repeat(512) },
  ])("takes the key $value as it is", ({ value }) => {
    expect(checkIdempotencyKey(value)).toEqual({ key: value, sentKey: value });
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
});
