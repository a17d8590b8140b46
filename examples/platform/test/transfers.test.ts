import type { IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import { startSandbox } from "@countersign/devtools/sandbox";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { pino } from "pino";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";
import type { Environment } from "@countersign/example-settings";
import type { BankRail } from "../src/bank-rail.ts";
import type { PlatformPorts } from "../src/platform.ts";
import { payoutBody, runPlatform } from "./running-platform.ts";
import { accept, payout, payoutsOn, tasks, testEngines, type TestStorage } from "./test-storage.ts";

interface Received {
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let url: string;
let statuses: number[];
let received: Received[];

beforeEach(async () => {
  received = [];
  statuses = [];
  const { server, port } = await listen((req, res) => {
    void (async () => {
      received.push({ method: req.method, headers: req.headers, body: await text(req) });
      res.writeHead(statuses.shift() ?? 200, { location: "/elsewhere" }).end("answer");
    })();
  });
  afterTest(() => close(server));
  url = `http://127.0.0.1:${port}/confirm`;
});

describe("the outcome of a payout", () => {
  async function pay(env: Environment, name?: string, ports?: Partial<PlatformPorts>): Promise<void> {
    const platform = await runPlatform(env, ports);
    expect((await platform.send(payoutBody("op.from.to", name))).status).toBe(200);
  }

  test("is posted as JSON", async () => {
    await pay({ CONFIRMATION_URL: url });
    await eventually(() => received.length === 1);
    const [{ method, headers, body } = { method: "", headers: {}, body: "" }] = received;
    expect([method, headers["content-type"], headers["x-api-key"]]).toEqual([
      "POST",
      "application/json",
      undefined,
    ]);
    expect(body).toMatch(
      /^\{"idempotency_key":"op.from.to","business_id":"b-1","status":"executed","settled_at":"[\d-]+T[\d:.]+Z"\}$/,
    );
  });

  test("has the reason of a failure", async () => {
    await pay({ CONFIRMATION_URL: url }, "Closed Account Ltd");
    await eventually(() => received.length === 1);
    const expected = { status: "failed", reason: "the account is closed" };
    expect(JSON.parse(received[0]!.body)).toMatchObject(expected);
  });

  test.each([302, 401, 404, 503])("is sent again after the answer %d", async (status) => {
    statuses = [status];
    await pay({ CONFIRMATION_URL: url });
    await eventually(() => received.length === 2);
    expect(received[1]!.body).toBe(received[0]!.body);
  });

  test("is understood by a sandbox, with its API key", async () => {
    const sandbox = await startSandbox({ apiKey: "test-key" });
    try {
      const there = new URL("/sandbox/confirmations", sandbox.url).href;
      await pay({ CONFIRMATION_URL: there, CONFIRMATION_API_KEY: "test-key" });
      await eventually(() => sandbox.confirmations().length === 1);
      expect(sandbox.confirmations()).toMatchObject([{ body: { idempotency_key: "op.from.to" } }]);
    } finally {
      await sandbox.close();
    }
  });

  test("is logged where nobody is to be told", async () => {
    const lines: string[] = [];
    const logger = pino({ base: null }, { write: (line: string) => lines.push(line) });
    await pay({}, undefined, { logger });
    const logged = (): string | undefined => lines.find((line) => line.includes("payout outcome, not sent"));
    await eventually(() => logged() !== undefined);
    expect(JSON.parse(logged()!)).toMatchObject({ idempotencyKey: "op.from.to", status: "executed" });
  });
});

for (const engine of testEngines)
  engine.describe(`transfers on ${engine.name}`, () => {
    let opened: TestStorage;

    beforeEach(async () => {
      opened = await engine.open();
    });

    async function work(rail?: BankRail): Promise<void> {
      const { workers } = await payoutsOn(opened, { rail, confirmationUrl: new URL(url) });
      for (const worker of workers) worker.start();
      afterTest(() => Promise.all(workers.map((worker) => worker.drain())));
    }

    test("are asked for again when the bank throws, and settled and reported once", async () => {
      await accept(opened, payout("a.b.c"));
      const orders: unknown[] = [];
      await work({
        async execute(order) {
          orders.push(order);
          if (orders.length === 1) throw new Error("the bank is closed");
          return { status: "executed" };
        },
      });
      await eventually(() => received.length === 1);
      expect(orders).toHaveLength(2);
      expect(orders[1]).toEqual(orders[0]);
      const [task] = await tasks(opened, "transfers", "done");
      expect(task?.failures).toMatchObject([{ reason: "the bank is closed" }]);
      expect(await opened.ledger.inspect()).toMatchObject([{ status: "executed" }]);
    });

    test("that were given up are taken up by the next process", async () => {
      await accept(opened, payout("a.b.c"));
      const { work: store } = opened.work;
      const [claimed] = await store.claim({ queue: "transfers", limit: 1, token: "t", leaseMs: 60_000 });
      await store.fail(claimed!, { reason: "exhausted", retryInMs: undefined });
      expect(await tasks(opened, "transfers", "dead")).toHaveLength(1);
      await work();
      await eventually(async () => (await opened.ledger.inspect())[0]?.status === "executed");
    });
  });
