import type { Environment, RedisLocation } from "@countersign/example-settings";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { pino } from "pino";
import { createClient } from "redis";
import { describeOnRedis, postgresUrl, redisUrl } from "@countersign/test-support/servers/engines.ts";
import { startPrivateRedis, type PrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import { connectRedis } from "@countersign/example-settings/redis-connection";
import { openRedisStorage } from "../src/engines/redis.ts";
import { dropKeys, platformStores } from "./platform-stores.ts";
import { payoutBody, runPlatform, type RunningPlatform } from "./running-platform.ts";
import { errorOf, isolatedPostgres } from "./test-storage.ts";
import { envelope, sendTestWebhook, webhookEnvironment } from "./webhook-sender.ts";

// Some tests start a server.

const silent = pino({ level: "silent" });
const redisStore = platformStores.find(({ isOneDatabase }) => !isOneDatabase)!;

redisStore.describe("a platform whose Redis has lost a key that was paid", () => {
  let place: Environment;
  let platform: RunningPlatform;
  let log: string[];

  beforeEach(async () => {
    place = redisStore.place();
    log = [];
    const logger = pino({}, { write: (line: string) => log.push(line) });
    platform = await runPlatform({ ...webhookEnvironment, WEBHOOK_ALLOW_HTTP: "1", ...place }, { logger });
  });

  function loseKeys(): Promise<void> {
    return dropKeys(String(place["KEY_PREFIX"]));
  }

  test("acknowledges it, pays nothing more, and answers 409 from then on", async () => {
    const body = payoutBody("op.from.to");
    expect((await platform.send(body)).status).toBe(200);
    await loseKeys();
    expect((await platform.send(body)).status).toBe(200);
    expect((await platform.send(body)).status).toBe(409);
    expect(await platform.inspect()).toHaveLength(1);
    expect(log.join("")).toContain("payout accepted by an earlier attempt");
    expect(log.join("")).not.toContain("another instruction");
  });

  test("keeps the first instruction when the key comes with another one, and raises an alarm", async () => {
    expect((await platform.send(payoutBody("op.from.to"))).status).toBe(200);
    await loseKeys();
    const other = payoutBody("op.from.to").replace("10.10", "99.99");
    expect((await platform.send(other)).status).toBe(200);
    expect(await platform.inspect()).toHaveLength(1);
    const alarms = log.filter((line) => line.includes("with another instruction"));
    expect(alarms).toHaveLength(1);
    expect(JSON.parse(alarms[0]!)).toMatchObject({ level: 50, idempotencyKey: "op.from.to" });
    expect(alarms[0]).not.toContain("99.99");
  });

  test("applies an event no second time", async () => {
    const data = { payment_request_id: "r-1", due_date: "2024-01-31", days_from_due_date: "-3" };
    const body = envelope({ type: "payment_request.repayment.reminder", data });
    expect((await sendTestWebhook(platform.url, { body })).status).toBe(200);
    await loseKeys();
    expect((await sendTestWebhook(platform.url, { body })).status).toBe(200);
    const inspect = async (what: string): Promise<unknown> =>
      (await fetch(`${platform.url}/inspect/${what}`)).json();
    expect(await inspect("events")).toMatchObject([{ event_id: "ev-1", applied: 1 }]);
    expect(await inspect("state")).toMatchObject({ payment_requests: { "r-1": { reminders: 1 } } });
  });
});

describeOnRedis("openRedisStorage, with a server that does not let it in", () => {
  let server: PrivateRedis | undefined;

  beforeAll(async () => {
    server = await startPrivateRedis({ args: ["--user", "app", "on", ">test-password", "~*", "+@all"] });
  });

  afterAll(() => server?.close());

  function location(url: string): RedisLocation {
    const payouts = { ...isolatedPostgres(), variable: "DATABASE_URL" as const };
    return { kind: "redis", url, variable: "STORE_URL", keyPrefix: "countersign", payouts };
  }

  test.each<[string, (url: URL) => void, RegExp]>([
    ["a server that is not there", (url) => void (url.port = "1"), /\(nobody listens there\)$/],
    ["a wrong password", (url) => void (url.username = "app"), /\(user name or password are wrong\)$/],
    [
      "a host that is not there",
      (url) => void (url.hostname = "redis.invalid"),
      /\((?:its host has no address|no answer)\)$/,
    ],
    [
      "TLS that the server has not",
      (url) => void (url.href = url.href.replace("redis:", "rediss:")),
      /STORE_URL/,
    ],
  ])("names STORE_URL, and no password, for %s", async (_name, change, message) => {
    if (server === undefined) return;
    const url = new URL(server.url);
    url.password = "hunter2";
    change(url);
    const error = await errorOf(openRedisStorage(location(url.href), silent));
    expect(error.variable).toBe("STORE_URL");
    expect(error.message).toMatch(/^STORE_URL: expected a Redis that lets the platform in \(/);
    expect(error.message).toMatch(message);
    expect(error.message).not.toMatch(/hunter2|\n/);
  });

  test("names DATABASE_URL when the database for the payouts cannot be used, and leaves no connection", async () => {
    const payouts = new URL(postgresUrl!);
    payouts.pathname = "/nowhere";
    const wish = location(server?.url ?? redisUrl!);
    const error = await errorOf(
      openRedisStorage({ ...wish, payouts: { ...wish.payouts, url: payouts.href } }, silent),
    );
    expect(error.message).toMatch(/^DATABASE_URL: .*\(there is no such database\)$/);
    if (server === undefined) return;
    const client = await createClient({ url: server.url }).connect();
    const clients = await client.clientList();
    await client.close();
    // The one that asks.
    expect(clients).toHaveLength(1);
  });

  test("comes back by itself when its connection was cut, and refuses commands in the meantime", async () => {
    if (server === undefined) return;
    const lines: string[] = [];
    const redis = await connectRedis(
      { url: server.url, variable: "STORE_URL" },
      pino({}, { write: (line: string) => lines.push(line) }),
    );
    expect(await redis.sendCommand(["PING"])).toBe("PONG");
    await server.stop();
    await expect(redis.sendCommand(["PING"])).rejects.toThrow();
    // At once: what is kept for later would run when its request has long been answered.
    await expect(redis.sendCommand(["PING"])).rejects.toThrow("The client is offline");
    await server.start();
    const end = Date.now() + 10_000;
    let answer: unknown;
    while (answer !== "PONG" && Date.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      answer = await redis.sendCommand(["PING"]).catch(() => undefined);
    }
    expect(answer).toBe("PONG");
    expect(lines.join("")).toContain("the connection to Redis was lost");
    await redis.close();
  });
});
