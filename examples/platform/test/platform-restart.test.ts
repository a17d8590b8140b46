// A platform whose servers are restarted under it: private ones, which belong to this file alone.
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { pino } from "pino";
import {
  startPrivatePostgres,
  type PrivatePostgres,
} from "@countersign/test-support/servers/private-postgres.ts";
import { startPrivateRedis, type PrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { payoutBody, runPlatform, type RunningPlatform } from "./running-platform.ts";
import { envelope, sendTestWebhook, webhookEnvironment } from "./webhook-sender.ts";

jest.setTimeout(60_000);

let postgres: PrivatePostgres | undefined;
let redis: PrivateRedis | undefined;
let platform: RunningPlatform | undefined;
let log: string[];

beforeEach(async () => {
  log = [];
  postgres = await startPrivatePostgres();
});

afterEach(async () => {
  await platform?.end();
  platform = undefined;
  await redis?.close();
  redis = undefined;
  await postgres?.close();
});

async function start(env: Readonly<Record<string, string | undefined>>): Promise<RunningPlatform> {
  const logger = pino({}, { write: (line: string) => log.push(line) });
  platform = await runPlatform({ ...webhookEnvironment, WEBHOOK_ALLOW_HTTP: "1", ...env }, { logger });
  return platform;
}

async function readiness({ url }: RunningPlatform): Promise<number> {
  return (await fetch(`${url}/readyz`)).status;
}

async function untilReady(running: RunningPlatform): Promise<void> {
  const end = Date.now() + 20_000;
  while ((await readiness(running)) !== 200) {
    if (Date.now() > end) throw new Error("the platform was not ready in time");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** As the service does: 503 means to come back. */
async function sendUntilDecided(running: RunningPlatform, body: string): Promise<number> {
  for (const end = Date.now() + 30_000; ;) {
    const { status } = await running.send(body);
    if (status !== 503 || Date.now() > end) return status;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function showsOutage(running: RunningPlatform): Promise<void> {
  expect(await readiness(running)).toBe(503);
  const refused = await running.send(payoutBody("op-2.from.to"));
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
  expect((await sendTestWebhook(running.url, { body: envelope({ event_id: "ev-2" }) })).status).toBe(404);
  expect((await fetch(`${running.url}/healthz`)).status).toBe(200);
}

async function goesOn(running: RunningPlatform): Promise<void> {
  await untilReady(running);
  expect((await running.send(payoutBody("op-1.from.to"))).status).toBe(409);
  expect(await sendUntilDecided(running, payoutBody("op-2.from.to"))).toBe(200);
  expect((await sendTestWebhook(running.url, { body: envelope({ event_id: "ev-2" }) })).status).toBe(200);
  const keys = (await running.inspect()).map(({ idempotency_key }) => idempotency_key);
  expect(keys).toEqual(["op-1.from.to", "op-2.from.to"]);
  const events = await (await fetch(`${running.url}/inspect/events`)).json();
  expect(events).toMatchObject([
    { event_id: "ev-1", applied: 1 },
    { event_id: "ev-2", applied: 1 },
  ]);
}

async function works(running: RunningPlatform): Promise<void> {
  expect((await running.send(payoutBody("op-1.from.to"))).status).toBe(200);
  expect((await sendTestWebhook(running.url)).status).toBe(200);
  expect(await readiness(running)).toBe(200);
}

describe("a platform whose PostgreSQL has everything", () => {
  test.each(["fast", "immediate"] as const)("survives its restart after a stop that is %s", async (mode) => {
    if (postgres === undefined) return;
    const running = await start({ STORE_URL: postgres.url });
    await works(running);
    await postgres.stop(mode);
    await showsOutage(running);
    await postgres.start();
    await goesOn(running);
    expect(log.join("")).toContain("a connection to PostgreSQL was lost");
  });
});

describe("a platform whose Redis has the keys, and PostgreSQL the payouts", () => {
  async function startOnBoth(): Promise<RunningPlatform | undefined> {
    redis = await startPrivateRedis({ persist: true });
    if (redis === undefined || postgres === undefined) return undefined;
    return start({ STORE_URL: redis.url, DATABASE_URL: postgres.url });
  }

  test.each(["stop", "kill"] as const)("survives the restart of its Redis after a %s", async (end) => {
    const running = await startOnBoth();
    if (running === undefined || redis === undefined) return;
    await works(running);
    await redis[end]();
    await showsOutage(running);
    await redis.start();
    await goesOn(running);
    expect(log.join("")).toContain("the connection to Redis was lost");
  });

  test("survives the restart of its PostgreSQL", async () => {
    const running = await startOnBoth();
    if (running === undefined || postgres === undefined) return;
    await works(running);
    await postgres.stop("immediate");
    await showsOutage(running);
    await postgres.start();
    await goesOn(running);
  });
});
