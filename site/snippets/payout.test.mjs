import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";
import Database from "libsql";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createApp } from "./test-app.js";

// A test key, new for each run.
const { keyid, publicKeyPem, privateKeyPem } = generateKeyPair();
const [username, password, secret] = ["service", "test-pass", "test-secret"];
const database = new Database(":memory:");
let server;
let base;

beforeAll(async () => {
  const app = createApp({
    database,
    keys: { [keyid]: publicKeyPem },
    webhooks: {
      basicAuth: { username, password },
      hmac: { secret },
      https: { dangerouslyAllowHttp: true }, // Refused in production.
    },
  });
  server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `http://127.0.0.1:${server.address().port}`;
});

afterAll(() => server.close());

const newKey = () => `payout-${randomUUID()}.funding-1.business-1`;

/** Each attempt is signed anew, with a nonce of its own. */
async function pay(idempotencyKey) {
  const request = buildPayoutRequest({
    url: `${base}/api/v1/transaction`,
    body: createPayoutInstruction({ idempotencyKey }),
    keyid,
    privateKey: privateKeyPem,
  });
  return (await sendPayout(request)).status;
}

test("a payout that comes twice is paid once", async () => {
  const key = newKey();
  expect(await pay(key)).toBe(200);
  expect(await pay(key)).toBe(409);
  const rows = database.prepare("SELECT key FROM payouts WHERE key = ?");
  expect(rows.all(key)).toEqual([{ key }]);
});

test("a payout whose row cannot be written is not paid", async () => {
  const key = newKey();
  database.exec(`CREATE TRIGGER full BEFORE INSERT ON payouts
    BEGIN SELECT RAISE(ABORT, 'full'); END`);
  expect(await pay(key)).toBe(500);
  database.exec("DROP TRIGGER full");
  expect(await pay(key)).toBe(200);
});

test("an event that comes twice is recorded once", async () => {
  const event = {
    event_id: "event-1",
    type: "buyer.status_changed",
    data: {
      buyer_id: "buyer-1",
      old_status: "PENDING",
      new_status: "ACTIVE",
    },
  };
  const now = BigInt(Date.now()) * 1_000_000n; // Nanoseconds.
  const webhook = buildWebhookRequest({
    url: `${base}/webhooks/3f9a`,
    username,
    password,
    secret,
    body: createEnvelope({ events: [event], now }),
    allowHttp: true,
  });

  expect((await sendRequest(webhook)).status).toBe(200);
  expect((await sendRequest(webhook)).status).toBe(200);
  expect(database.prepare("SELECT id FROM events").all()).toEqual([
    { id: "event-1" },
  ]);
});
