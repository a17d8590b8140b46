import { randomUUID } from "node:crypto";
import { renameSync, unlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { openKeys, readSettings, SettingError } from "@countersign/example-settings";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { pino } from "pino";
import request from "supertest";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { createApp, type AppParts } from "../src/app.ts";
import { payoutBody, payoutPath, runPlatform, sendHalf } from "./running-platform.ts";
import { makeTestKey, signPayout } from "./signer.ts";
import { memoryStorage, type TestStorage } from "./test-storage.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

describe("the payout route", () => {
  test("pays the businesses that are configured alone, and any where none are", async () => {
    const unknown = payoutBody("op.from.to").replace("DE89370400440532013000", "GB82WEST12345698765432");
    const platform = await runPlatform();
    expect((await platform.send(unknown)).status).toBe(400);
    expect((await platform.send(payoutBody("op.from.to").replace('"b-1"', '"b-2"'))).status).toBe(400);
    expect(await platform.inspect()).toEqual([]);
    const open = await runPlatform({ BUSINESSES: undefined });
    expect((await open.send(unknown)).status).toBe(200);
  });

  test("refuses an unsigned payout, a foreign key and another path with one 401", async () => {
    const platform = await runPlatform();
    const body = payoutBody("op.from.to");
    const headers = { "content-type": "application/json" };
    const unsigned = await fetch(platform.url + payoutPath, { method: "POST", headers, body });
    const foreign = await platform.send(body, { key: makeTestKey("service-1") });
    const elsewhere = await platform.send(body, { signedPath: "/api/v1/other" });
    const answers = [unsigned, foreign, elsewhere];
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401]);
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
    expect(await platform.inspect()).toEqual([]);
  });

  test("asks for the reference text under its configured name", async () => {
    const platform = await runPlatform({ REFERENCE_FIELD: "remittance" });
    const body = payoutBody("op.from.to");
    expect((await platform.send(body)).status).toBe(400);
    expect((await platform.send(body.replace('{"idem', '{"remittance":"invoice 7","idem'))).status).toBe(200);
  });

  test("is signed with the prefix that a proxy takes off", async () => {
    const platform = await runPlatform({ PATH_PREFIX: "/payments" });
    const body = payoutBody("op.from.to");
    expect((await platform.send(body)).status).toBe(401);
    expect((await platform.send(body, { signedPath: `/payments${payoutPath}` })).status).toBe(200);
  });

  test.each([
    ["an allowed address behind a trusted proxy", "127.0.0.1", "203.0.113.7", 200],
    ["another address behind it", "127.0.0.1", "198.51.100.7", 401],
    [
      "an allowed address that the caller made up in front of its own",
      "127.0.0.1",
      "203.0.113.7, 198.51.100.7",
      401,
    ],
    ["an allowed address without a trusted proxy", undefined, "203.0.113.7", 401],
  ])("sees %s", async (_name, proxies, forwardedFor, status) => {
    const platform = await runPlatform({ TRUST_PROXY: proxies, PAYOUT_ALLOWED_IPS: "203.0.113.7" });
    const headers = { "x-forwarded-for": forwardedFor };
    expect((await platform.send(payoutBody("op.from.to"), { headers })).status).toBe(status);
    if (proxies === undefined) expectWarning(/^\[forwarded-for-ignored\]/);
  });
});

describe("the other routes", () => {
  test("say that the platform lives and is ready, under helmet's header fields", async () => {
    const platform = await runPlatform();
    const health = await fetch(`${platform.url}/healthz`);
    const ready = await fetch(`${platform.url}/readyz`);
    expect([health.status, ready.status]).toEqual([200, 200]);
    expect(health.headers.get("x-content-type-options")).toBe("nosniff");
    expect(health.headers.get("x-powered-by")).toBeNull();
  });

  test.each([
    ["payouts", undefined],
    ["payouts", "0"],
    ["events", undefined],
    ["state", undefined],
  ])("have no /inspect/%s with PLATFORM_INSPECT %s", async (what, inspect) => {
    const platform = await runPlatform({ PLATFORM_INSPECT: inspect });
    expect((await fetch(`${platform.url}/inspect/${what}`)).status).toBe(404);
  });
});

describe("the keys of a running platform", () => {
  interface InspectedKeys {
    readonly accepted: readonly string[];
    readonly used: readonly { readonly keyid: string; readonly count: number }[];
  }

  test("follow a directory: a new key is taken, an old one refused, without a restart", async () => {
    const keys = testFolder();
    const [old, next] = [makeTestKey("old"), makeTestKey("next")];
    writeFileSync(path.join(keys, "old.pem"), old.publicKeyPem);
    const platform = await runPlatform({ PAYOUT_KEYS: keys });
    const pay = async (key: typeof old): Promise<number> =>
      (await platform.send(payoutBody(`${randomUUID()}.f.b`), { key })).status;
    const inspectKeys = async (): Promise<InspectedKeys> =>
      (await (await fetch(`${platform.url}/inspect/keys`)).json()) as InspectedKeys;
    const accepts = (count: number): Promise<void> =>
      eventually(async () => (await inspectKeys()).accepted.length === count);
    expect([await pay(old), await pay(next)]).toEqual([200, 401]);
    writeFileSync(path.join(keys, "next.pem.new"), next.publicKeyPem);
    renameSync(path.join(keys, "next.pem.new"), path.join(keys, "next.pem"));
    await accepts(2);
    expect([await pay(old), await pay(next)]).toEqual([200, 200]);
    unlinkSync(path.join(keys, "old.pem"));
    await accepts(1);
    expect([await pay(old), await pay(next)]).toEqual([401, 200]);
    expect((await inspectKeys()).used).toMatchObject([
      { keyid: "next", count: 2 },
      { keyid: "old", count: 2 },
    ]);
  });

  test("are asked for at the start", async () => {
    const settings = readSettings({ PAYOUT_KEYS: "http://127.0.0.1:1/jwks.json" });
    await expect(openKeys(settings.keys)).rejects.toThrow(SettingError);
  });
});

describe("close", () => {
  test("cuts off a caller that never ends, and says so", async () => {
    const platform = await runPlatform({}, { closeTimeoutMs: 50 });
    const half = await sendHalf(platform.url, platform.key, payoutBody("op.from.to"));
    await expect(platform.close()).rejects.toThrow(/still ran after 50 ms/);
    await half.answer;
  });
});

describe("the app", () => {
  const key = makeTestKey("service-1");
  const settings = readSettings({
    STORE_URL: "memory:",
    PAYOUT_KEYS: JSON.stringify({ [key.keyid]: key.publicKeyPem }),
  });

  let opened: TestStorage;
  let lines: string[];

  beforeEach(async () => {
    opened = await memoryStorage();
    lines = [];
  });

  function app(changes: Partial<AppParts> = {}): ReturnType<typeof createApp> {
    const { stores, ledger, parties } = opened;
    return createApp({
      settings,
      keys: new Map([[key.keyid, importVerificationKey(key.keyid, key.publicKeyPem)]]),
      inspectKeys: () => ({ accepted: [], used: [] }),
      stores,
      ledger,
      outcomes: undefined,
      parties,
      logger: pino({}, { write: (line: string) => lines.push(line) }),
      endpoints: [],
      isClosing: () => false,
      ...changes,
    });
  }

  async function send(target: ReturnType<typeof createApp>, body: string): Promise<request.Response> {
    return request(target)
      .post(payoutPath)
      .set({ ...signPayout(key, payoutPath, body) })
      .send(body);
  }

  test("answers 500 without a word about the cause when the payout cannot be written, and pays when it is sent again", async () => {
    const body = payoutBody("op.from.to");
    const broken: AppParts["ledger"] = {
      ...opened.ledger,
      accept() {
        throw new Error("disk full at /var/lib/platform.db");
      },
    };
    const failed = await send(app({ ledger: broken }), body);
    expect(failed.status).toBe(500);
    expect(failed.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(failed.body).toEqual({ type: "about:blank", title: "Internal Server Error", status: 500 });
    expect(lines.join("")).toContain("disk full");
    expect((await send(app(), body)).status).toBe(200);
  });

  test("is not ready during the shutdown, while it is healthy", async () => {
    const target = app({ isClosing: () => true });
    expect((await request(target).get("/readyz")).status).toBe(503);
    expect((await request(target).get("/healthz")).status).toBe(200);
  });
});
