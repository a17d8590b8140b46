import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { generateEndpoint } from "countersign";
import Database from "libsql";
import { createApp as createShort } from "../../examples/snippets/dist/countersign.js";
import { createApp } from "../../examples/snippets/dist/reference/countersign.js";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const { keyid, publicKeyPem, privateKeyPem } = generateKeyPair();
const endpoint = generateEndpoint({ baseUrl: "https://platform.example" });
const body = createPayoutInstruction({ idempotencyKey: "payout-1.funding-1.business-1" });

let folder: string;
let file: string;
let server: Server;
let origin: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "countersign-example-"));
  file = path.join(folder, "platform.db");
});
afterEach(async () => {
  server.close();
  await once(server, "close");
  rmSync(folder, { recursive: true, force: true });
});

async function start(create: typeof createApp): Promise<void> {
  server = create({ [keyid]: publicKeyPem }, endpoint, file).listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** As the proxy hands it on, which names the client. */
async function pay(privateKey = privateKeyPem, from = "192.0.2.10"): Promise<number> {
  const url = `${origin}/api/v1/transaction`;
  const headers = { "X-Forwarded-For": from };
  return (await sendPayout(buildPayoutRequest({ url, body, privateKey, keyid, headers }))).status;
}

/** As the proxy hands it on, which says https. */
async function notify(password = endpoint.password): Promise<number> {
  const events = [{ event_id: "ev-1", type: "buyer.approved", data: { buyer_id: "b-1" } }];
  const envelope = createEnvelope({ events, now: 1_800_000_000_123_456_789n });
  const to = { url: origin + endpoint.path, allowHttp: true, body: envelope };
  const request = buildWebhookRequest({
    ...to,
    username: endpoint.username,
    password,
    secret: endpoint.secret,
  });
  const headers = { ...request.headers, "X-Forwarded-Proto": "https" };
  return (await sendRequest({ ...request, headers })).status;
}

function rows(sql: string): unknown[] {
  const database = new Database(file);
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}

const doneKeys = "SELECT key FROM countersign_idempotency WHERE state = 'done'";

describe.each([
  ["README", createShort],
  ["page", createApp],
])("the example of the %s", (place, create) => {
  beforeEach(() => start(create));

  test("takes a signed payout once: 200, then 409", async () => {
    expect([await pay(), await pay()]).toEqual([200, 409]);
    expect(rows(doneKeys)).toEqual([{ key: `payout:${body.idempotency_key}` }]);
  });

  test("takes nothing of another key or address", async () => {
    expect(await pay(generateKeyPair().privateKeyPem)).toBe(401);
    expect(await pay(privateKeyPem, "192.0.2.11")).toBe(401);
    expect(rows(doneKeys)).toEqual([]);
  });

  test("handles an event once, however often it comes, and shows strangers nothing", async () => {
    if (place === "README") expectWarning(/^handle buyer\.approved$/);
    expect([await notify("wrong"), await notify(), await notify()]).toEqual([404, 200, 200]);
    expect(rows(doneKeys)).toEqual([{ key: "webhook-event:ev-1" }]);
  });
});

test("the example of the page writes payment and event with their keys", async () => {
  await start(createApp);
  await Promise.all([pay(), notify()]);
  expect(rows("SELECT * FROM payouts")).toEqual([
    { idempotency_key: body.idempotency_key, iban: body.beneficiary.iban },
  ]);
  expect(rows("SELECT * FROM events")).toEqual([{ event_id: "ev-1", type: "buyer.approved" }]);
});
