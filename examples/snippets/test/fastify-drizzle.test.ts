// The code of the page of Fastify on PostgreSQL, run: a payout and an event count once.
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createPayoutInstruction,
  sampleBusiness,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";
import { migrate } from "@countersign/store-sql";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { serviceKey, servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { drizzle } from "drizzle-orm/node-postgres";
import { fastify } from "fastify";
import { Client, Pool } from "pg";
import { receive } from "../dist/databases/fastify-drizzle.js";

const name = isolatedName("fastify");
const server = postgresUrl ?? "postgres://nowhere";
const credentials = { username: "service", password: "test-password" };

async function administer(text: string): Promise<void> {
  const client = new Client({ connectionString: server });
  await client.connect();
  await client.query(text);
  await client.end();
}

describeOnPostgres("Fastify with Drizzle on PostgreSQL", () => {
  const app = fastify({ trustProxy: ["127.0.0.1"] });
  // As its proxy does.
  const forwarded = { "X-Forwarded-For": "192.0.2.10", "X-Forwarded-Proto": "https" };
  let pool: Pool;
  let end: () => Promise<void>;
  let url: string;
  beforeAll(async () => {
    await administer(`CREATE DATABASE ${name}`);
    pool = new Pool({ connectionString: Object.assign(new URL(server), { pathname: `/${name}` }).href });
    await migrate(pool);
    await pool.query("CREATE TABLE businesses (id text, iban text, PRIMARY KEY (id, iban))");
    const { businessId, iban } = sampleBusiness;
    await pool.query("INSERT INTO businesses VALUES ($1, $2)", [businessId, iban]);
    await pool.query(
      "CREATE TABLE payments (key text PRIMARY KEY, iban text NOT NULL, amount numeric NOT NULL)",
    );
    await pool.query("CREATE TABLE events (id text PRIMARY KEY)");
    end = await receive(app, drizzle(pool), {
      keys: { "test-key-ed25519": servicePublicPem },
      webhookUrl: "/hooks",
      basicAuth: credentials,
      hmac: { secret: "test-secret" },
    });
    url = await app.listen({ port: 0, host: "127.0.0.1" });
  });
  afterAll(async () => {
    await end();
    await administer(`DROP DATABASE ${name}`);
  });

  const send = async (body: object): Promise<number> => {
    const request = buildPayoutRequest({
      url: `${url}/api/v1/transaction`,
      body,
      keyid: "test-key-ed25519",
      privateKey: serviceKey.export({ type: "pkcs8", format: "pem" }).toString(),
    });
    return (await sendPayout({ ...request, headers: { ...request.headers, ...forwarded } })).status;
  };

  test("pays once, with the digits that were signed", async () => {
    const body = createPayoutInstruction();
    expect([await send(body), await send(body)]).toEqual([200, 409]);
    const { rows } = await pool.query<{ amount: string }>("SELECT amount FROM payments");
    expect(rows).toEqual([{ amount: expect.stringMatching(/^\d+\.\d\d$/) }]);
  });

  test.each([
    ["without an amount", { amount: {} }],
    ["of less than nothing", { amount: { value: "-5", currency: "EUR" } }],
    ["to somebody unknown", { businessId: "business-2" }],
  ])("pays nothing %s", async (_title, told) => {
    const { rows: before } = await pool.query("SELECT key FROM payments");
    expect(await send(createPayoutInstruction(told))).toBe(400);
    expect((await pool.query("SELECT key FROM payments")).rows).toEqual(before);
  });

  test("counts an event once", async () => {
    const event = { event_id: "ev_1", timestamp: "2026-11-24T00:00:00Z", type: "anything", data: {} };
    const envelope = { webhook_id: "wh_1", timestamp: event.timestamp, events: [event] };
    const built = buildWebhookRequest({
      url: `${url}/hooks`,
      ...credentials,
      secret: "test-secret",
      allowHttp: true,
      body: Buffer.from(JSON.stringify(envelope)),
    });
    const request = { ...built, headers: { ...built.headers, ...forwarded } };
    expect([(await sendRequest(request)).status, (await sendRequest(request)).status]).toEqual([200, 200]);
    expect((await pool.query("SELECT FROM events")).rowCount).toBe(1);
  });
});
