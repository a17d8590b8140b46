import { createHmac } from "node:crypto";
import { traces, type PublishedEvents } from "@countersign/core";
import { traced } from "@countersign/core/internal";
import { receiveWebhook } from "countersign/webhooks";
import { webhookHmac } from "@countersign/webhook-hmac";
import { served } from "@countersign/test-support/servers/served.ts";
import { send } from "@countersign/test-support/servers/page-client.ts";
import { beforeEach, expect, test } from "@jest/globals";
import express from "express";
import { envelope, handlerOf } from "../../../../endpoints/countersign/test/webhooks/endpoint/endpoint.ts";
import { InspectorBench, payoutPath, seeded } from "./inspector-bench.ts";

const bench = new InspectorBench();
beforeEach(() => bench.open());

interface Row {
  readonly id: number;
  readonly attemptCount: number;
  readonly oldestId: number;
  readonly attempts: readonly { readonly id: number }[];
}

async function rows(query = ""): Promise<readonly Row[]> {
  const { status, body } = await bench.ask(`/inspector/requests?${query}`);
  expect(status).toBe(200);
  return body["requests"] as readonly Row[];
}

const ids = async (query: string): Promise<readonly number[]> => (await rows(query)).map(({ id }) => id);

test("attempts under one key are one row, the newest first", async () => {
  for (const key of ["key-1", "key-2", "key-1", "key-1"]) await bench.pay(key);
  expect(await rows()).toMatchObject([
    {
      id: 4,
      oldestId: 1,
      attemptCount: 3,
      attempts: [
        { id: 4, outcome: "reject", code: "already-processed", status: 409 },
        { id: 3, outcome: "reject" },
        { id: 1, outcome: "pass", status: 200 },
      ],
    },
    { id: 2, oldestId: 2, attemptCount: 1, attempts: [] },
  ]);
  expect(await ids("limit=1")).toEqual([4]);
  expect(await ids("limit=1&before=4")).toEqual([2]);
  expect((await bench.ask("/inspector/requests")).body["total"]).toBe(2);
  // A refusal under the key is an attempt too; the other is left out with its outcome.
  expect(await rows("outcome=pass")).toMatchObject([{ id: 2 }, { id: 1, attemptCount: 1 }]);
});

test("a row has twenty attempts at most, and the number of all", async () => {
  for (let count = 0; count < 22; count += 1) await bench.pay("key-1");
  const [row] = await rows();
  expect(row).toMatchObject({ id: 22, oldestId: 1, attemptCount: 22 });
  expect(row?.attempts.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, index) => 22 - index));
});

test("unsigned requests are folded by nothing that they claim", async () => {
  for (const headers of [{}, { Signature: "" }])
    await bench.pay("key-1", { headers: { ...headers, "Signature-Input": "" } });
  expect(await rows()).toMatchObject([{ attemptCount: 1 }, { attemptCount: 1 }]);
});

test("a webhook that comes again is one row, found by event id and type", async () => {
  let failures = 1;
  const handler = handlerOf(() => {
    failures -= 1;
    if (failures >= 0) throw new Error(`the ledger is closed, ${seeded.other}`);
  });
  const app = express();
  app.post("/hooks", webhookHmac({ secret: seeded.secret }), receiveWebhook(handler));
  const origin = await served(app);
  const body = envelope("evt-4711");
  const notify = () =>
    send(`${origin}/hooks`, {
      method: "POST",
      body,
      headers: {
        "Content-Type": "application/json",
        "X-Payload-Signature": createHmac("sha256", seeded.secret).update(body).digest("base64"),
      },
    });
  const answers = [await notify(), await notify()].map(({ status }) => status);
  expect(answers).toEqual([503, 200]);
  expect(await rows()).toMatchObject([
    {
      id: 2,
      attemptCount: 2,
      attempts: [{ id: 2, status: 200 }, { id: 1 }],
      events: [{ type: "buyer.status_changed", eventId: "evt-4711" }],
    },
  ]);
  for (const search of ["EVT-4711", "buyer.status", "wh_1", "/hooks"])
    expect(await ids(`search=${encodeURIComponent(search)}`)).toEqual([2]);
  // What the app's handler threw is shown although its onError has it.
  expect((await bench.ask("/inspector/requests/1")).body["errors"]).toMatchObject([
    { from: "handler", chain: [{ name: "Error", message: "the ledger is closed, [masked]" }] },
  ]);
});

test("a search finds keys, codes and paths in any case, and nothing in a query or a body", async () => {
  await bench.pay("Key-Alpha");
  await bench.pay("key-beta");
  await bench.pay("key-beta");
  const unknown = "/nowhere-in-a-path";
  await bench.notify(`{"seen":"${unknown}"}`);
  expect(await ids("search=key-alpha")).toEqual([1]);
  expect(await ids("search=ALREADY-processed")).toEqual([3]);
  expect(await ids(`search=${encodeURIComponent(payoutPath)}`)).toEqual([3, 1]);
  expect(await ids("search=alpha&outcome=reject")).toEqual([]);
  for (const search of [unknown, "reference", "no such text"])
    expect(await ids(`search=${encodeURIComponent(search)}`)).toEqual([]);
  expect((await bench.ask("/inspector/requests?search=key-beta")).body["total"]).toBe(1);
  for (const query of [`search=${"x".repeat(513)}`, "search=a&search=b"])
    expect(await bench.ask(`/inspector/requests?${query}`)).toMatchObject({ status: 400 });
});

test("an event of no request is no part of any", async () => {
  await bench.pay("key-1");
  const event: PublishedEvents["event"] = {
    type: "t",
    isKnownType: false,
    eventId: "evt-lost",
    webhookId: "w",
    attempt: 1,
  };
  await traced(traces.event, event, { work: () => Promise.resolve(), outcomeOf: () => "done" });
  expect(await ids("search=evt-lost")).toEqual([]);
});
