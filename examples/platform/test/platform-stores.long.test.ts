// The platform on each kind of STORE_URL: what must not depend on it.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, test } from "@jest/globals";
import type { Environment } from "@countersign/example-settings";
import { afterTest, testFolder } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import type { BankRail } from "../src/bank-rail.ts";
import type { PlatformPorts } from "../src/platform.ts";
import { platformStores } from "./platform-stores.ts";
import { capture, killAll, listeningUrl, type Captured } from "./platform-process.ts";
import { payoutBody, payoutPath, runPlatform, type RunningPlatform } from "./running-platform.ts";
import { makeTestKey, signPayout } from "./signer.ts";
import { envelope, sendTestWebhook, webhookEnvironment } from "./webhook-sender.ts";

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const webhooks = { ...webhookEnvironment, WEBHOOK_ALLOW_HTTP: "1" };

// Some tests start processes, on a machine that may be busy.

const key = makeTestKey("service-1");

interface InspectedEvent {
  readonly event_id: string;
  readonly applied: number;
}

for (const store of platformStores) {
  store.describe(`the platform on ${store.name}`, () => {
    let place: Environment;
    let keys: string;

    beforeEach(() => {
      place = store.place();
      keys = path.join(testFolder(), "keys.json");
      writeFileSync(keys, JSON.stringify({ [key.keyid]: key.publicKeyPem }));
    });

    const run = (ports?: Partial<PlatformPorts>): Promise<RunningPlatform> =>
      runPlatform({ ...place, ...webhooks, PAYOUT_KEYS: keys }, ports);

    async function startProcess(): Promise<{ readonly url: string; readonly platform: Captured }> {
      const settings = { PORT: "0", DATABASE_URL: undefined, PLATFORM_INSPECT: "1", PAYOUT_KEYS: keys };
      afterTest(killAll);
      const platform = capture(process.execPath, [main], { env: { ...settings, ...webhooks, ...place } });
      return { url: await listeningUrl(platform), platform };
    }

    test("accepts a payout once, executes it once, and answers its key with 409", async () => {
      const orders: string[] = [];
      const rail: BankRail = {
        async execute({ idempotencyKey, instruction }) {
          orders.push(`${idempotencyKey} ${instruction}`);
          return { status: "executed" };
        },
      };
      const platform = await run({ rail });
      const body = payoutBody("op.from.to");
      expect((await platform.send(body, { key })).status).toBe(200);
      expect((await platform.send(body, { key })).status).toBe(409);
      expect((await platform.send(body.replace("10.10", "99.99"), { key })).status).toBe(409);
      await eventually(async () => (await platform.inspect())[0]?.status === "executed");
      expect(orders).toEqual([`op.from.to ${body}`]);
      expect(await platform.inspect()).toHaveLength(1);
      expect((await fetch(`${platform.url}/readyz`)).status).toBe(200);
    });

    test("refuses what is no amount, and keeps nothing of it", async () => {
      const platform = await run();
      const body = payoutBody("op.from.to");
      for (const amount of ["{}", '{"value":-10.10}', '{"value":"0.00"}', '{"value":1.001}']) {
        const spoilt = body.replace(/\{"value".*?\}/, amount);
        // oxlint-disable-next-line no-await-in-loop -- one key
        expect(await platform.send(spoilt, { key })).toMatchObject({ status: 400 });
      }
      expect(await platform.inspect()).toEqual([]);
      expect((await platform.send(body, { key })).status).toBe(200);
    });

    test("pays 100 identical payouts at two processes a single time", async () => {
      const [one, other] = [await run(), await run()];
      const body = payoutBody("op.from.to");
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? one : other).send(body, { key })),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(1);
      expect(statuses.filter((status) => ![200, 409, 503].includes(status))).toEqual([]);
      expect(await one.inspect()).toHaveLength(1);
      expect(await other.inspect()).toHaveLength(1);
    });

    test("applies an event once, also when it comes to two processes at once and again", async () => {
      const platforms = [await run(), await run()];
      const bodies = Array.from({ length: 30 }, (_, index) => envelope({}, { event_id: `ev-${index % 7}` }));
      const send = async (): Promise<number[]> =>
        Promise.all(
          bodies.map(async (body, index) => {
            const { url } = platforms[index % 2]!;
            return (await sendTestWebhook(url, { body })).status;
          }),
        );
      await send();
      // What another process was handling has been refused, to be sent again.
      expect(new Set(await send())).toEqual(new Set([200]));
      const response = await fetch(`${platforms[0]!.url}/inspect/events`);
      const events = (await response.json()) as readonly InspectedEvent[];
      expect(new Map(events.map(({ event_id, applied }) => [event_id, applied]))).toEqual(
        new Map(Array.from({ length: 7 }, (_, index) => [`ev-${index}`, 1])),
      );
    });

    test("knows after SIGKILL what it has paid, seen and applied", async () => {
      const first = await startProcess();
      const body = payoutBody("op.from.to");
      const headers = { ...signPayout(key, payoutPath, body) };
      const send = async (url: string, sent: Readonly<Record<string, string>>): Promise<number> =>
        (await fetch(url + payoutPath, { method: "POST", headers: sent, body })).status;
      expect(await send(first.url, headers)).toBe(200);
      expect((await sendTestWebhook(first.url)).status).toBe(200);
      first.platform.child.kill("SIGKILL");
      await first.platform.ended;

      const second = await startProcess();
      expect(await send(second.url, headers)).toBe(401);
      expect(await send(second.url, { ...signPayout(key, payoutPath, body) })).toBe(409);
      expect((await sendTestWebhook(second.url)).status).toBe(200);
      const inspect = async (what: string): Promise<unknown> =>
        (await fetch(`${second.url}/inspect/${what}`)).json();
      expect(await inspect("payouts")).toMatchObject([{ idempotency_key: "op.from.to" }]);
      expect(await inspect("events")).toMatchObject([{ event_id: "ev-1", applied: 1 }]);
      expect(await inspect("state")).toMatchObject({ buyers: { "b-1": "ACTIVE" } });
      second.platform.child.kill("SIGTERM");
      expect(await second.platform.ended).toBe(0);
      expect(second.platform.stderr()).not.toContain("password");
    });
  });
}
