import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { hostileSignatures } from "@countersign/test-support/signers/hostile-signatures.ts";
import { signRequest } from "@countersign/test-support/signers/independent-signer.ts";
import {
  cachedKeys,
  importVerificationKey,
  type HttpSignatureVerifyOptions,
  type VerificationKey,
} from "@countersign/http-signature-verify";
import type { KeyValidity } from "@countersign/http-message-signatures";
import type { WireAnswer, WireRequest } from "@countersign/test-support/servers/http-client.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import express5 from "express";
import { startPlatform, type Platform, expressVersions } from "./platform.ts";

const rows = hostileSignatures(signRequest);

const comparable = ({ headers, status, body }: WireAnswer): unknown => ({
  status,
  body,
  headers: { ...headers, date: undefined },
});

type Setting = [
  name: string,
  express: (typeof expressVersions)[number][1],
  engine: Partial<HttpSignatureVerifyOptions>,
];
const settings: readonly Setting[] = [
  ...expressVersions.map(([name, express]): Setting => [name, express, {}]),
  ["Express 5 by libsodium", express5, { engine: "sodium" }],
  ["Express 5 by portable JavaScript", express5, { engine: "noble" }],
  ["Express 5 on the event loop", express5, { threadPool: false }],
];

describe.each(settings)("httpSignatureVerify on %s against hostile requests", (_name, express, engine) => {
  let platform: Platform;
  let reference: WireAnswer;

  beforeAll(async () => {
    platform = await startPlatform(express, engine);
    reference = await platform.send({ ...signRequest(), headers: [] });
  });
  afterAll(() => platform.close());

  test.each(rows)("refuses %s (%s)", async (_title, code, make) => {
    const before = platform.reached.length;
    const answer = await platform.send(make());
    expect(platform.codes.at(-1)).toBe(code);
    expect(comparable(answer)).toEqual(comparable(reference));
    expect(answer.status).toBe(401);
    expect(platform.reached).toHaveLength(before);
  });

  test("lets a request that is sound pass", async () => {
    expect((await platform.send(signRequest())).status).toBe(200);
  });

  test("tells nothing but Unauthorized", () => {
    expect(JSON.parse(reference.body)).toEqual({ type: "about:blank", title: "Unauthorized", status: 401 });
  });
});

const keyWith = (validity: KeyValidity): VerificationKey =>
  importVerificationKey("test-key", servicePublicPem, validity);

/** Each row: what the platform asks for beyond the default, what the caller does, the code in the log. */
const policyRows: [string, Partial<HttpSignatureVerifyOptions>, string, () => WireRequest][] = [
  [
    "a key for other paths",
    { keys: () => keyWith({ scope: { paths: ["/other/"] } }) },
    "key-scope",
    () => signRequest(),
  ],
  [
    "a key of another environment",
    { keys: () => keyWith({ scope: { environment: "test" } }), environment: "live" },
    "key-scope",
    () => signRequest(),
  ],
  ["a key that is revoked", { keys: () => keyWith({ revokedAt: 1 }) }, "key-revoked", () => signRequest()],
  [
    "a keyid for which the store says null later",
    { keys: async () => null },
    "key-unknown",
    () => signRequest(),
  ],
  [
    "a keyid for which the cached store says null",
    { keys: cachedKeys(async () => null) },
    "key-unknown",
    () => signRequest(),
  ],
];

describe.each(expressVersions)("httpSignatureVerify on %s with a policy", (_name, express) => {
  test.each(policyRows)("refuses %s", async (_title, options, code, make) => {
    const platform = await startPlatform(express, options);
    try {
      const reference = await platform.send({ ...signRequest(), headers: [] });
      expect(comparable(await platform.send(make()))).toEqual(comparable(reference));
      expect(platform.codes).toEqual(["signature-missing", code]);
      expect(platform.reached).toEqual([]);
    } finally {
      await platform.close();
    }
  });

  test("answers 503 while a key look-up hangs, and serves the keyid again once the source does", async () => {
    let hangs = true;
    const source = (): unknown => (hangs ? new Promise(() => {}) : servicePublicPem);
    const keys = cachedKeys(source as () => string, { lookupTimeoutMs: 30 });
    const platform = await startPlatform(express, { keys });
    try {
      const late = await platform.send(signRequest());
      expect([late.status, late.headers["retry-after"]]).toEqual([503, "5"]);
      hangs = false;
      expect((await platform.send(signRequest())).status).toBe(200);
    } finally {
      await platform.close();
    }
  });

  test("answers 503 to made-up keyids beyond the bound of look-ups, before any signature check", async () => {
    const lookups: ((error: Error) => void)[] = [];
    const source = (): Promise<never> => new Promise((_resolve, reject) => lookups.push(reject));
    const keys = cachedKeys(source, { maxLookups: 3, lookupTimeoutMs: 20_000 });
    const arrived: unknown[] = [];
    const platform = await startPlatform(express, { keys }, (app) => {
      app.use((req, _res, next) => {
        arrived.push(req);
        next();
      });
    });
    try {
      const sent = Array.from({ length: 20 }, (_, index) =>
        platform.send(signRequest({ keyid: `made-up-${index}` })),
      );
      while (arrived.length < 20) await delay(5);
      for (const fail of lookups) fail(new Error("the key server is down"));
      const answers = await Promise.all(sent);
      for (const { status, headers } of answers) expect([status, headers["retry-after"]]).toEqual([503, "5"]);
      expect(lookups).toHaveLength(3);
      expect(new Set(platform.codes)).toEqual(new Set(["key-store-unavailable"]));
    } finally {
      await platform.close();
    }
  });
});
