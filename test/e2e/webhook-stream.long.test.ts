import { createHmac, randomInt } from "node:crypto";
import type { Server } from "node:http";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler, webhookEndpoint, type WebhookEvent } from "countersign/webhooks";
import type { KnownEventType } from "../../packages/endpoints/countersign/dist/webhooks/envelope/events.js";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import express from "express";
import Database from "libsql";
import { close, listen, send } from "../support/servers/http-client.ts";
import { webhookStream, type ServiceState } from "../support/signers/webhook-stream.ts";

const webhookCount = 10_000;
const largestWebhook = 20;
const connections = 16;
const path = "/hooks/2b1f6f0e9d584b6f8a3c";
// TEST CREDENTIALS.
const username = "service";
const password = "test-password";
const secret = "test-secret";

const database = new Database(":memory:");
const stores = createStores({ database });
database.exec(`
  CREATE TABLE effects (event_id TEXT NOT NULL) STRICT;
  CREATE TABLE parties (kind TEXT NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL, changed_at TEXT NOT NULL, PRIMARY KEY (kind, id)) STRICT;
  CREATE TABLE requests (id TEXT NOT NULL PRIMARY KEY, closed INTEGER NOT NULL, reminders INTEGER NOT NULL) STRICT;
`);
const insertEffect = database.prepare("INSERT INTO effects (event_id) VALUES (?)");
const upsertParty = database.prepare(`
  INSERT INTO parties (kind, id, status, changed_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (kind, id) DO UPDATE SET status = excluded.status, changed_at = excluded.changed_at
  WHERE excluded.changed_at > parties.changed_at`);
const upsertRequest = database.prepare(`
  INSERT INTO requests (id, closed, reminders) VALUES (?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET closed = max(closed, excluded.closed), reminders = reminders + excluded.reminders`);

const types: readonly KnownEventType[] = [
  "buyer.status_changed",
  "seller.status_changed",
  "payment_request.repayment.repaid",
  "payment_request.repayment.reminder",
];

let server: Server;
let port: number;
const failures = { before: 0, behind: 0 };

beforeAll(async () => {
  const handler = createWebhookHandler({
    stores,
    fallback: "ignore",
    onError: () => {},
  });
  for (const type of types) handler.on(type, applyUnreliably);
  const app = express();
  app.use(
    path,
    webhookEndpoint({
      basicAuth: { credentials: [{ username, password }] },
      hmac: { secrets: [secret] },
      https: { dangerouslyAllowHttp: true },
      handler,
      onReject: () => {},
    }),
  );
  ({ server, port } = await listen(app));
});

afterAll(async () => {
  await close(server);
  stores.close();
  database.close();
});

/** Fails before it has written, and behind that. */
function applyUnreliably(event: WebhookEvent): undefined {
  const choice = randomInt(60);
  if (choice === 0) failAt("before");
  insertEffect.run(event.event_id);
  apply(event);
  if (choice === 1) failAt("behind");
}

function failAt(point: keyof typeof failures): never {
  failures[point] += 1;
  throw new Error(`the handler fails ${point}`);
}

function apply(event: WebhookEvent): void {
  // Fixed width, so that text compares as the number does.
  const changedAt = String(event.timestamp.epochNanoseconds).padStart(20, "0");
  switch (event.type) {
    case "buyer.status_changed":
      upsertParty.run("buyer", event.data.buyer_id, event.data.new_status, changedAt);
      break;
    case "seller.status_changed":
      upsertParty.run("seller", event.data.seller_id, event.data.new_status, changedAt);
      break;
    case "payment_request.repayment.repaid":
      upsertRequest.run(event.data.payment_request_id, 1, 0);
      break;
    case "payment_request.repayment.reminder":
      upsertRequest.run(event.data.payment_request_id, 0, 1);
      break;
  }
}

async function post(body: Buffer): Promise<number> {
  const { status } = await send(port, {
    method: "POST",
    path,
    headers: Object.entries({
      Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
      "Content-Type": "application/json",
      "X-Payload-Signature": createHmac("sha256", secret).update(body).digest("base64"),
    }).flat(),
    body,
  });
  return status;
}

/** Delivers everything until all is acknowledged: out of order, some twice at once, some again after their success. */
async function deliverAll(webhooks: readonly Buffer[]): Promise<Map<number, number>> {
  const answers = new Map<number, number>();
  const queue = shuffledNearby(webhooks);
  const deliver = async (body: Buffer): Promise<boolean> => {
    const status = await post(body);
    answers.set(status, (answers.get(status) ?? 0) + 1);
    return status === 200;
  };
  const work = async (): Promise<void> => {
    for (let body = queue.shift(); body !== undefined; body = queue.shift()) {
      const twice = randomInt(10) === 0 ? [body, body] : [body];
      const delivered = await Promise.all(twice.map(deliver));
      // A retry comes later than what is sent next; a success is repeated now and then.
      if (!delivered.includes(true) || randomInt(20) === 0) queue.push(body);
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  return answers;
}

function shuffledNearby(webhooks: readonly Buffer[]): Buffer[] {
  const sent = webhooks.map((body, index) => ({ body, at: index + randomInt(50) }));
  sent.sort((one, other) => one.at - other.at);
  return sent.map(({ body }) => body);
}

function receiverState(): ServiceState {
  const parties = database.prepare("SELECT kind, id, status FROM parties").all() as {
    kind: string;
    id: string;
    status: string;
  }[];
  const requests = database.prepare("SELECT id, closed, reminders FROM requests").all() as {
    id: string;
    closed: number;
    reminders: number;
  }[];
  const ofKind = (wanted: string): Map<string, string> =>
    new Map(parties.filter(({ kind }) => kind === wanted).map(({ id, status }) => [id, status]));
  return {
    buyers: ofKind("buyer"),
    sellers: ofKind("seller"),
    payment_requests: new Map(
      requests.map(({ id, closed, reminders }) => [
        id,
        { status: closed === 1 ? "CLOSED" : "PENDING_REPAYMENT", reminders },
      ]),
    ),
  };
}

test("10,000 webhooks with failures, duplicates, reordering and concurrent deliveries take effect exactly once", async () => {
  const { webhooks, eventIds, state } = webhookStream(webhookCount, largestWebhook);
  const answers = await deliverAll(webhooks);
  const { total, distinct } = database
    .prepare("SELECT count(*) AS total, count(DISTINCT event_id) AS 'distinct' FROM effects")
    .all()[0] as { total: number; distinct: number };
  expect(new Set(answers.keys())).toEqual(new Set([200, 404]));
  expect({ total, distinct }).toEqual({ total: eventIds.size, distinct: eventIds.size });
  expect(receiverState()).toEqual(state);
  for (const count of Object.values(failures)) expect(count).toBeGreaterThan(100);
}, 480_000);
