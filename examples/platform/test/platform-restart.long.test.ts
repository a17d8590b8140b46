// A platform whose servers are restarted under it: private ones, which belong to this file alone.
import { beforeEach, expect, test } from "@jest/globals";
import { pino } from "pino";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import {
  startPrivatePostgres,
  type PrivatePostgres,
} from "@countersign/test-support/servers/private-postgres.ts";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { payoutBody, runPlatform, type RunningPlatform } from "./running-platform.ts";
import { envelope, sendTestWebhook, webhookEnvironment } from "./webhook-sender.ts";

let postgres: PrivatePostgres | undefined;
let log: string[];

beforeEach(async () => {
  log = [];
  postgres = await startPrivatePostgres();
  afterTest(() => postgres?.close());
});

function start(env: Readonly<Record<string, string | undefined>>): Promise<RunningPlatform> {
  const logger = pino({}, { write: (line: string) => log.push(line) });
  return runPlatform({ ...webhookEnvironment, WEBHOOK_ALLOW_HTTP: "1", ...env }, { logger });
}

async function readiness({ url }: RunningPlatform): Promise<number> {
  return (await fetch(`${url}/readyz`)).status;
}

async function showsOutage(running: RunningPlatform): Promise<void> {
  expect(await readiness(running)).toBe(503);
  const refused = await running.send(payoutBody("op-2.from.to"));
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
  expect((await sendTestWebhook(running.url, { body: envelope({ event_id: "ev-2" }) })).status).toBe(404);
  expect((await fetch(`${running.url}/healthz`)).status).toBe(200);
}

/** As the service does, whose retries this status asks for: a server that has just come back may be slow to answer. */
async function afterRetries(
  retried: number,
  send: () => Promise<{ readonly status: number }>,
): Promise<number> {
  let status = retried;
  await eventually(async () => {
    ({ status } = await send());
    return status !== retried;
  });
  return status;
}

async function goesOn(running: RunningPlatform): Promise<void> {
  await eventually(async () => (await readiness(running)) === 200);
  expect(await afterRetries(503, () => running.send(payoutBody("op-1.from.to")))).toBe(409);
  expect(await afterRetries(503, () => running.send(payoutBody("op-2.from.to")))).toBe(200);
  expect(
    await afterRetries(404, () => sendTestWebhook(running.url, { body: envelope({ event_id: "ev-2" }) })),
  ).toBe(200);
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

test("a platform whose PostgreSQL has everything survives its crash", async () => {
  if (postgres === undefined) return;
  const running = await start({ STORE_URL: postgres.url });
  await works(running);
  // Several connections, of which the workers do not use all: the loss of an idle one is logged.
  await Promise.all(Array.from({ length: 8 }, () => readiness(running)));
  await postgres.stop("immediate");
  await showsOutage(running);
  await postgres.start();
  await goesOn(running);
  expect(log.join("")).toContain("a connection to PostgreSQL was lost");
});

test("a platform whose Redis has the keys, and PostgreSQL the payouts, survives a kill of its Redis", async () => {
  const redis = await startPrivateRedis({ persist: true });
  afterTest(() => redis?.close());
  if (redis === undefined || postgres === undefined) return;
  const running = await start({ STORE_URL: redis.url, DATABASE_URL: postgres.url });
  await works(running);
  await redis.kill();
  await showsOutage(running);
  await redis.start();
  await goesOn(running);
  expect(log.join("")).toContain("the connection to Redis was lost");
});
