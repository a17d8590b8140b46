import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createPayoutInstruction, generateKeyPair, sampleBusiness } from "@countersign/devtools/sandbox";
import { generateEndpoint } from "countersign/webhooks";
import type * as Database from "../src/database.ts";
import { databaseSettings, removeDatabase } from "./fresh-database.ts";
import { forwardedFor, notify, pay, webhookOf } from "./lending-service.ts";

// TEST KEYS, made anew each time.
const { keyid, publicKeyPem, privateKeyPem } = generateKeyPair();
const webhook = generateEndpoint({ baseUrl: "https://platform.example/webhooks" });

// The platform starts with these, and the database is opened here with the same.
Object.assign(process.env, {
  NODE_ENV: "production",
  COUNTERSIGN_STDERR: "off", // what is refused here is to be refused
  HOST: "127.0.0.1",
  PORT: "0",
  TRUST_PROXY: "loopback",
  KEYID: keyid,
  PUBLIC_KEY: publicKeyPem,
  ALLOW_IPS: forwardedFor,
  WEBHOOK_PATH: webhook.path,
  WEBHOOK_USERNAME: webhook.username,
  WEBHOOK_PASSWORD: webhook.password,
  WEBHOOK_SECRET: webhook.secret,
  ...databaseSettings,
});

let platform: ChildProcess;
let url: string;
let database: typeof Database;

before(start, { timeout: 60_000 });

async function start(): Promise<void> {
  const program = fileURLToPath(new URL("../src/server.js", import.meta.url));
  platform = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  url = await listening(platform);
  database = await import("../src/database.ts");
  await database.openDatabase();
  await database.addBusiness(sampleBusiness.businessId, sampleBusiness.iban);
}

after(async () => {
  if (platform.exitCode === null && platform.kill("SIGKILL")) await once(platform, "exit");
  await database?.closeDatabase();
  await removeDatabase();
});

describe("the platform", () => {
  const paid = createPayoutInstruction({ idempotencyKey: "payout-1.funding-1.business-1" });

  test("pays a signed payout", async () => {
    assert.equal(await pay(url, paid, keyid, privateKeyPem), 200);
    assert.deepEqual((await database.recorded()).payouts, [paid.idempotency_key]);
  });

  test("does not pay it again", async () => {
    assert.equal(await pay(url, paid, keyid, privateKeyPem), 409);
    assert.deepEqual((await database.recorded()).payouts, [paid.idempotency_key]);
  });

  test("pays nothing that somebody else has signed, and nobody whom it does not know", async () => {
    const forger = generateKeyPair().privateKeyPem;
    assert.equal(await pay(url, createPayoutInstruction(), keyid, forger), 401);
    const toStranger = createPayoutInstruction({ businessId: "business-2" });
    assert.equal(await pay(url, toStranger, keyid, privateKeyPem), 400);
    assert.deepEqual((await database.recorded()).payouts, [paid.idempotency_key]);
  });

  test("pays nothing without an amount, or of less than nothing", async () => {
    for (const amount of [{}, { value: "-5" }, { value: "0.00" }, { value: "1.123456" }]) {
      assert.equal(await pay(url, createPayoutInstruction({ amount }), keyid, privateKeyPem), 400);
    }
    assert.deepEqual((await database.recorded()).payouts, [paid.idempotency_key]);
  });

  test("handles an event once, however often it is delivered", async () => {
    const body = webhookOf("event-1");
    assert.equal(await notify(url + webhook.path, body, webhook), 200);
    assert.equal(await notify(url + webhook.path, body, webhook), 200);
    assert.deepEqual((await database.recorded()).events, ["event-1"]);
  });

  test("shows strangers no webhook", async () => {
    const forged = { ...webhook, secret: "another secret" };
    assert.equal(await notify(url + webhook.path, webhookOf("event-2"), forged), 404);
    assert.deepEqual((await database.recorded()).events, ["event-1"]);
  });

  test("ends by itself when it is told to", async () => {
    const exit = once(platform, "exit");
    platform.kill("SIGTERM");
    assert.deepEqual(await exit, [0, null]);
  });
});

/** The URL that the platform says it listens at. */
async function listening({ stdout }: ChildProcess): Promise<string> {
  assert(stdout !== null);
  for await (const line of createInterface({ input: stdout })) {
    const found = /^listening on (http:\S+)$/.exec(line)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error("the platform has ended without listening: its reason stands above");
}
