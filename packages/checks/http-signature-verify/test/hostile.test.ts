import { describe, expect, test } from "@jest/globals";
import { signRequest } from "@countersign/test-support/signers/independent-signer.ts";
import { cachedKeys, type HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { WireAnswer } from "@countersign/test-support/servers/http-client.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { startPlatform, expressVersions } from "./platform.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

const comparable = ({ headers, status, body }: WireAnswer): unknown => ({
  status,
  body,
  headers: { ...headers, date: undefined },
});

// What a caller can do to a signature is in test/vectors, which test/vectors/adapters.long.test.ts sends through every adapter.
describe.each(expressVersions)("httpSignatureVerify on %s against hostile requests", (_name, express) => {
  test.each<[string, Partial<HttpSignatureVerifyOptions>, string]>([
    ["another method", {}, "signature-mismatch"],
    ["another method by libsodium", { engine: "sodium" }, "signature-mismatch"],
    ["another method by portable JavaScript", { engine: "noble" }, "signature-mismatch"],
    ["another method on the event loop", { threadPool: false }, "signature-mismatch"],
    ["a keyid for which the store says null later", { keys: async () => null }, "key-unknown"],
    ["a keyid for which the cached store says null", { keys: cachedKeys(async () => null) }, "key-unknown"],
  ])("tells nothing but Unauthorized: %s", async (_title, options, code) => {
    const platform = await startPlatform(express, options);
    try {
      const reference = await platform.send({ ...signRequest(), headers: [] });
      expect(JSON.parse(reference.body)).toEqual({ type: "about:blank", title: "Unauthorized", status: 401 });
      const answer = await platform.send({ ...signRequest({ method: "PUT" }), method: "POST" });
      expect(comparable(answer)).toEqual(comparable(reference));
      expect(platform.codes).toEqual(["signature-missing", code]);
      expect(platform.reached).toEqual([]);
      const sound = await platform.send(signRequest());
      expect(sound.status).toBe(code === "key-unknown" ? 401 : 200);
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
      await eventually(() => arrived.length >= 20);
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
