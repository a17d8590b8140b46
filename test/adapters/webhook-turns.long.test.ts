// Slow events on SQLite, whose handlers cannot wait: other requests have their turns all the same.
import { createWebhookHandler } from "countersign/webhooks";
import { expect } from "@jest/globals";
import express5 from "express";
import { steadyTest } from "../support/runs/steadily.ts";
import { expressAdapter } from "./express-adapter.ts";
import { engines, type Tx } from "./payments/engines.ts";
import { deliver, envelope, event, webhookScene } from "./webhook-scene.ts";

const count = 300;
const eventMs = 3;

steadyTest("300 slow events leave the event loop to others", async () => {
  const tables = await engines.find(({ name }) => name === "sqlite")?.open();
  if (tables === undefined) throw new Error("no SQLite");
  const handler = createWebhookHandler({
    stores: tables.process(),
    fallback({ event_id: id }, { tx }: { readonly tx: Tx }) {
      const endsAtMs = performance.now() + eventMs;
      tables.sql(tx, `INSERT INTO payments VALUES ('${id}')`);
      while (performance.now() < endsAtMs);
    },
  });
  const options = { handler, hmac: { limit: "100kb" } };
  const opened = await expressAdapter("express 5", express5).open(webhookScene(false, { options })());
  const names = Array.from({ length: count }, (_, index) => `ev_${index}`);
  const turns: number[] = [];
  const timer = setInterval(() => turns.push(performance.now()), 1);
  const body = envelope(names.map((name) => ({ ...event, event_id: name })));
  const beganAtMs = performance.now();
  const { status } = await opened.send(deliver(body));
  clearInterval(timer);
  await opened.close();
  expect(status).toBe(200);
  expect(await tables.paid()).toEqual(names);
  const gaps = turns.map((atMs, index) => atMs - (turns[index - 1] ?? beganAtMs));
  // A turn has 8 ms and one event more; without turns the events of a commit take 150 ms. Half of them: any one may be the machine's.
  expect(gaps.filter((gap) => gap > 75).length).toBeLessThan(gaps.length / 2);
  expect(turns.length).toBeGreaterThan((count * eventMs) / 75);
});
