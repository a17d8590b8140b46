// The code of the page of the inbox: both handlers, through the endpoint.
import { signPayload } from "@countersign/webhook-hmac";
import { generateEndpoint } from "countersign/webhooks";
import { served } from "@countersign/test-support/servers/served.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { expect, jest, test } from "@jest/globals";
import Database from "libsql";
import { repeatDeadLetters } from "../dist/guide/dead-letters.js";
import { createApp } from "../dist/guide/inbox.js";

const event = (event_id: string, type: string, data: object, second: number) => ({
  event_id,
  timestamp: `2024-01-02T03:04:0${second}Z`,
  type,
  data: { old_status: "PENDING", new_status: `STATUS_${second}`, ...data },
});

test("the inbox of the page acknowledges, then writes and calls", async () => {
  const database = new Database(":memory:");
  const endpoint = generateEndpoint({ baseUrl: "https://platform.example" });
  const statuses = [500, 200, 404];
  const told = jest.spyOn(console, "error").mockImplementation(() => {});
  const sent: string[] = [];
  const { app, inbox, stores } = createApp(endpoint, database, {
    async send(_to, id) {
      sent.push(id);
      return { status: statuses.shift() ?? 200 };
    },
  });
  app.set("trust proxy", "loopback");
  const origin = await served(app);
  const timestamp = "2024-01-02T03:04:05Z";
  const body = JSON.stringify({
    webhook_id: "wh_1",
    timestamp,
    events: [
      event("ev_1", "buyer.status_changed", { buyer_id: "b_1" }, 2),
      event("ev_2", "buyer.status_changed", { buyer_id: "b_1" }, 1),
      event("ev_3", "seller.status_changed", { seller_id: "s_1" }, 1),
      event("ev_4", "seller.status_changed", { seller_id: "s_1" }, 2),
    ],
  });
  const answer = await fetch(origin + endpoint.path, {
    method: "POST",
    body,
    headers: {
      Authorization: `Basic ${btoa(`${endpoint.username}:${endpoint.password}`)}`,
      "Content-Type": "application/json",
      "X-Forwarded-Proto": "https",
      "X-Payload-Signature": signPayload(Buffer.from(body), endpoint.secret),
    },
  });
  expect(answer.status).toBe(200);
  await eventually(async () => (await stores.work.read("inbox", "ev_4"))?.state === "dead");
  expect(sent).toEqual(["ev_3", "ev_3", "ev_4"]);
  expect(database.prepare("SELECT id FROM mails").all()).toEqual([{ id: "ev_3" }]);
  expect(database.prepare("SELECT * FROM buyers").all()).toEqual([{ id: "b_1", status: "STATUS_2" }]);
  expect((await stores.work.read("inbox", "ev_3"))?.failures).toMatchObject([
    { attempt: 1, reason: "the mail service answered 500" },
  ]);
  const logged = jest.spyOn(console, "log").mockImplementation(() => {});
  statuses.push(200);
  expect(await repeatDeadLetters(stores)).toBe(1);
  expect(logged).toHaveBeenCalledWith("ev_4", "no such seller");
  logged.mockRestore();
  await eventually(async () => (await stores.work.read("inbox", "ev_4"))?.state === "done");
  expect(await inbox.drain()).toEqual({ keys: 0, claims: 0 });
  expect(told.mock.calls.map(([, id]) => id)).toEqual(["ev_4"]);
  told.mockRestore();
  stores.close();
  database.close();
});
