// The recipes for webhooks of GitHub, Stripe, Slack, Svix and Shopify, sent what these senders send.
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { signPayloadHeaders } from "@countersign/webhook-hmac";
import { fromPg } from "@countersign/store-sql/pg";
import { migrate } from "@countersign/store-sql";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { served } from "@countersign/test-support/servers/served.ts";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { captureRawBody } from "@countersign/raw-body";
import express, { type Express, type Request } from "express";
import Database from "libsql";
import { Pool } from "pg";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { createApp as appOnFastify } from "../dist/guide/fastify-check.js";
import { createApp as appOfGuide } from "../dist/guide/other-webhooks.js";
import { createApp as appOnPostgres } from "../dist/guide/webhooks-on-postgres.js";
import { createApi } from "../dist/idempotency-key.js";
import { createApp as appOfReadme } from "../dist/webhook-hmac.js";
import { createApp as appOfReference } from "../dist/reference/webhook-hmac.js";

type Scheme = "github" | "shopify" | "slack" | "stripe" | "svix";

const bare = "0123456789abcdef0123456789abcdef";
const encoded = `whsec_${Buffer.from(bare).toString("base64")}`;
const secretOf = (scheme: Scheme): string => (scheme === "svix" ? encoded : bare);

interface Message {
  readonly scheme: Scheme;
  readonly path: string;
  readonly body: string;
  readonly type?: string;
  readonly id?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a message as its sender signs it. */
async function deliver(
  origin: string,
  { scheme, path, body, type = "application/json", id, headers }: Message,
): Promise<{ readonly status: number; readonly text: string }> {
  const signed = signPayloadHeaders(Buffer.from(body), secretOf(scheme), { scheme, id });
  const answer = await fetch(origin + path, {
    method: "POST",
    body,
    headers: { "Content-Type": type, ...signed, ...headers },
  });
  return { status: answer.status, text: await answer.text() };
}

const handled = jest.fn<(body: unknown) => void>();

function guide(): Express {
  const names = ["github", "shopify", "slack", "stripe", "svix"] as const;
  const [github, shopify, slack, stripe, svix] = names.map((name) => [secretOf(name)]);
  const secrets = { github, shopify, slack, stripe, svix } as Record<Scheme, readonly string[]>;
  return appOfGuide(new Database(":memory:"), secrets, (req: Request, res) => {
    handled(req.body);
    res.json({ handled: true });
  });
}

const github = {
  scheme: "github",
  path: "/webhooks/github",
  headers: { "X-GitHub-Delivery": "72d3162e" },
} as const;

/** A recipe whose handler writes in the transaction of the delivery. */
function writing(createApp: typeof appOfReadme): Express {
  const database = new Database(":memory:");
  database.exec("CREATE TABLE events (body TEXT)");
  const insert = database.prepare("INSERT INTO events VALUES (?)");
  return createApp([bare], database, (event) => {
    handled(event);
    insert.run(JSON.stringify(event));
  });
}

interface Recipe {
  readonly title: string;
  readonly app: () => Express;
  readonly message: Omit<Message, "body">;
  readonly first: object;
  readonly later: object;
  /** False for a recipe whose handler takes nothing from outside. */
  readonly tells?: boolean;
}

const counted = (count: number): object => ({ id: "evt_1", object: "event", pending_webhooks: count });

const recipes: readonly Recipe[] = [
  {
    title: "GitHub, of the guide",
    app: guide,
    message: github,
    first: { action: "opened", installation: 1 },
    later: { action: "opened", installation: 2 },
  },
  {
    title: "GitHub, of the package's README",
    app: () => writing(appOfReadme),
    message: github,
    first: { action: "opened", installation: 1 },
    later: { action: "opened", installation: 2 },
  },
  {
    title: "GitHub, of the package's page",
    app: () => writing(appOfReference),
    message: github,
    first: { action: "opened", installation: 1 },
    later: { action: "opened", installation: 2 },
  },
  {
    title: "Shopify",
    app: guide,
    message: {
      scheme: "shopify",
      path: "/webhooks/shopify",
      headers: { "X-Shopify-Webhook-Id": "b54557e4" },
    },
    first: { id: 1, updated_at: "2026-01-01" },
    later: { id: 1, updated_at: "2026-01-02" },
  },
  {
    title: "Stripe, which counts pending_webhooks down",
    app: guide,
    message: { scheme: "stripe", path: "/webhooks/stripe" },
    first: counted(2),
    later: counted(1),
  },
  {
    title: "Slack",
    app: guide,
    message: { scheme: "slack", path: "/webhooks/slack" },
    first: { type: "event_callback", event_id: "Ev1", authorizations: [1] },
    later: { type: "event_callback", event_id: "Ev1", authorizations: [2] },
  },
  {
    title: "Svix",
    app: guide,
    message: { scheme: "svix", path: "/webhooks/svix", id: "msg_1" },
    first: { type: "a", attempt: 1 },
    later: { type: "a", attempt: 2 },
  },
  {
    title: "Svix, of the page of Idempotency-Key",
    tells: false,
    app: () =>
      createApi(new Database(":memory:"), (_req, _res, next) => next(), {
        answerSecret: randomBytes(32).toString("base64"),
        webhookSecret: encoded,
      }),
    message: { scheme: "svix", path: "/webhooks", id: "msg_1" },
    first: { type: "a", attempt: 1 },
    later: { type: "a", attempt: 2 },
  },
];

test.each(recipes)(
  "acknowledges a later attempt with other bytes: $title",
  async ({ app, tells = true, ...recipe }) => {
    jest.spyOn(console, "log").mockImplementation(() => {});
    const origin = await served(app());
    handled.mockClear();
    const { message, first, later } = recipe;
    expect((await deliver(origin, { ...message, body: JSON.stringify(first) })).status).toBe(200);
    const known = { status: 200, text: "" };
    expect(await deliver(origin, { ...message, body: JSON.stringify(later) })).toEqual(known);
    if (tells) expect(handled.mock.calls).toEqual([[first]]);
  },
);

test("acknowledges a later attempt with other bytes on Fastify, and refuses another signature", async () => {
  handled.mockClear();
  const app = appOnFastify(new Database(":memory:"), [bare], handled);
  const origin = await app.listen({ port: 0, host: "127.0.0.1" });
  afterTest(() => app.close());
  const received = { status: 200, text: '{"received":true}' };
  expect(await deliver(origin, { ...github, body: '{"installation":1}' })).toEqual(received);
  expect(await deliver(origin, { ...github, body: '{"installation":2}' })).toEqual({ status: 200, text: "" });
  const forged = {
    ...github,
    headers: { ...github.headers, "X-Hub-Signature-256": `sha256=${"0".repeat(64)}` },
  };
  const unauthorized = '{"type":"about:blank","title":"Unauthorized","status":401}';
  expect(await deliver(origin, { ...forged, body: "{}" })).toEqual({ status: 401, text: unauthorized });
  expect(handled.mock.calls).toEqual([[{ installation: 1 }]]);
});

describeOnPostgres("the recipe on PostgreSQL", () => {
  const name = isolatedName("deliveries");
  const admin = new Pool({ connectionString: postgresUrl });
  const url = new URL(postgresUrl ?? "postgres://127.0.0.1");
  url.pathname = name;
  let pool: Pool;

  beforeAll(async () => {
    await admin.query(`CREATE DATABASE ${name}`);
    pool = new Pool({ connectionString: url.href });
    await migrate(fromPg(pool));
    await pool.query("CREATE TABLE deliveries (id text PRIMARY KEY, body jsonb)");
  });
  afterAll(async () => {
    await pool.end();
    await admin.query(`DROP DATABASE ${name}`);
    await admin.end();
  });

  test("acknowledges a later attempt with other bytes", async () => {
    const origin = await served(appOnPostgres(pool, [bare]));
    const received = { status: 200, text: '{"received":true}' };
    expect(await deliver(origin, { ...github, body: '{"installation":1}' })).toEqual(received);
    expect(await deliver(origin, { ...github, body: '{"installation":2}' })).toEqual({
      status: 200,
      text: "",
    });
    const { rows } = await pool.query("SELECT body FROM deliveries");
    expect(rows).toEqual([{ body: { installation: 1 } }]);
  });
});

describe("what the page says that does not work", () => {
  test("is refused with 415: GitHub's default content type", async () => {
    const body = "payload=%7B%7D";
    const form = { ...github, body, type: "application/x-www-form-urlencoded" };
    expect((await deliver(await served(guide()), form)).status).toBe(415);
  });

  test.each([
    [undefined, 413],
    ["25mb", 200],
  ])("is a delivery over 100 kB behind express.json() with the limit %s: %d", async (limit, status) => {
    const app = express().use(express.json({ verify: captureRawBody, limit }), guide());
    const body = JSON.stringify({ text: "x".repeat(150_000) });
    const told = jest.spyOn(console, "error").mockImplementation(() => {});
    expect((await deliver(await served(app), { ...github, body })).status).toBe(status);
    told.mockRestore();
  });

  test("ends the process: an async handler that throws, on Express 4 without a wrapper", async () => {
    const run = promisify(execFile);
    const play = (work: string) =>
      run(process.execPath, [
        "--input-type=module",
        "--eval",
        `import express from "express4";
         const work = async () => { throw new Error("the ledger is closed"); };
         const app = express().get("/", ${work}).use((error, req, res, next) => res.sendStatus(503));
         const server = app.listen(0, "127.0.0.1", async () => {
           const { status } = await fetch("http://127.0.0.1:" + server.address().port);
           console.log(status);
           process.exit();
         });`,
      ]);
    await expect(play("work")).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/the ledger is closed/),
    });
    const wrapped = await play("(req, res, next) => { work(req, res).catch(next); }");
    expect(wrapped.stdout).toBe("503\n");
  });
});

describe("the recipe of Slack", () => {
  const slack = { scheme: "slack", path: "/webhooks/slack" } as const;
  const commands = {
    scheme: "slack",
    path: "/webhooks/slack/commands",
    type: "application/x-www-form-urlencoded",
  } as const;

  test("answers url_verification with the challenge, and leaves it to no handler", async () => {
    const origin = await served(guide());
    handled.mockClear();
    const body = '{"token":"t","challenge":"3eZbrw1a","type":"url_verification"}';
    const answer = { status: 200, text: '{"challenge":"3eZbrw1a"}' };
    expect(await deliver(origin, { ...slack, body })).toEqual(answer);
    expect(await deliver(origin, { ...slack, body })).toEqual(answer);
    expect(handled).not.toHaveBeenCalled();
  });

  test("answers no challenge without Slack's signature", async () => {
    const answer = await fetch(`${await served(guide())}${slack.path}`, {
      method: "POST",
      body: '{"challenge":"3eZbrw1a","type":"url_verification"}',
      headers: { "Content-Type": "application/json" },
    });
    expect(answer.status).toBe(401);
    expect(await answer.text()).not.toContain("3eZbrw1a");
  });

  test("handles app_rate_limited once a minute for each app and workspace", async () => {
    const origin = await served(guide());
    handled.mockClear();
    const notice = { type: "app_rate_limited", team_id: "T1", api_app_id: "A1" };
    const sent = [
      { ...notice, minute_rate_limited: 1518467820 },
      { ...notice, minute_rate_limited: 1518467820 },
      { ...notice, minute_rate_limited: 1518467880 },
      { ...notice, minute_rate_limited: 1518467880, team_id: "T2" },
    ];
    for (const one of sent) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as they are sent
      expect((await deliver(origin, { ...slack, body: JSON.stringify(one) })).status).toBe(200);
    }
    expect(handled.mock.calls.flat()).toEqual([sent[0], sent[2], sent[3]]);
  });

  test("handles each slash command once, by its trigger", async () => {
    const origin = await served(guide());
    handled.mockClear();
    const pay = "command=%2Fpay&text=10&trigger_id=13345224609.8534564800";
    const again = "command=%2Fpay&text=10&trigger_id=13345224609.8534564801";
    const told: number[] = [];
    for (const body of [pay, pay, again]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as they are sent
      told.push((await deliver(origin, { ...commands, body })).status);
    }
    expect(told).toEqual([200, 200, 200]);
    expect(handled.mock.calls.flat()).toEqual([
      expect.objectContaining({ command: "/pay", text: "10", trigger_id: "13345224609.8534564800" }),
      expect.objectContaining({ command: "/pay", text: "10", trigger_id: "13345224609.8534564801" }),
    ]);
  });

  test.each([
    ["an event without event_id", { ...slack, body: '{"type":"event_callback"}' }],
    ["a slash command without trigger_id", { ...commands, body: "command=%2Fpay" }],
  ])("refuses %s with 400", async (_title, message) => {
    handled.mockClear();
    expect((await deliver(await served(guide()), message)).status).toBe(400);
    expect(handled).not.toHaveBeenCalled();
  });
});
