// Webhooks that are committed, acknowledged, and worked on afterwards.
import { createInbox, createWebhookHandler, parseWebhookEnvelope } from "countersign/webhooks";
import type { WorkStores } from "@countersign/idempotency/work";
import { describe, expect, test } from "@jest/globals";
import express5 from "express";
import { afterTest } from "../support/runs/after-test.ts";
import { eventually } from "../support/runs/eventually.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchAdapter } from "./fetch-adapter.ts";
import { after, engines, type Tables, type Tx } from "./payments/engines.ts";
import { deliver, envelope, event, webhookScene } from "./webhook-scene.ts";

const adapters = [expressAdapter("express 5", express5), fastifyAdapter, fetchAdapter];
const buyer = "buyer.status_changed";
const seller = "seller.status_changed";

/** A buyer's event; `at` is its time, in nanoseconds within a second. */
function buyerEvent(event_id: string, buyer_id: string, at = 0) {
  const timestamp = `2024-01-02T03:04:05.${String(at).padStart(9, "0")}Z`;
  return { ...event, event_id, timestamp, data: { ...event.data, buyer_id } };
}

function sellerEvent(event_id: string) {
  return { ...event, event_id, type: seller, data: { ...event.data, buyer_id: undefined, seller_id: "s1" } };
}

// Each would be refused as a whole webhook, or sent again for a day, if it were a fault of more than itself.
const malformed: readonly string[] = [
  JSON.stringify(buyerEvent("bad_1", "b1")).replace('"b1"', String.raw`"\ud83d"`),
  JSON.stringify({ ...buyerEvent("bad_2", "b1"), data: {} }),
  JSON.stringify({ ...buyerEvent("bad_3", "b1"), timestamp: "yesterday" }),
  JSON.stringify(buyerEvent("", "b1")),
  "null",
];
const besideMalformed = envelope([]).replace(
  "[]",
  `[${[JSON.stringify(buyerEvent("ev_1", "b1")), ...malformed, JSON.stringify(buyerEvent("ev_2", "b2"))].join(",")}]`,
);

const write = (tables: Tables, tx: Tx, id: string): unknown =>
  tables.sql(tx, `INSERT INTO payments VALUES ('${id}')`);

/** An inbox of a process of its own, which looks often and pauses briefly. */
function processOf(tables: Tables, options: { readonly receiveOnly?: boolean } = {}) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of engines with a table of work
  const stores = tables.process() as WorkStores<Tx>;
  const often = { pollMs: 20, backoffMs: 1, maxBackoffMs: 5 };
  const inbox = createInbox({
    stores,
    fallback: "ignore",
    name: "inbox",
    onError: () => {},
    ...often,
    ...options,
  });
  afterTest(() => inbox.drain({ timeoutMs: 2_000 }));
  const ended = async (ids: readonly string[]): Promise<void> => {
    await eventually(async () => {
      const records = await Promise.all(ids.map((id) => stores.work.read("inbox", id)));
      return records.every((record) => record?.state === "done");
    });
  };
  return { stores, inbox, ended };
}

describe.each(engines)("an inbox on $name", (engine) => {
  test.each(adapters)(
    "behind $name acknowledges, then works: once, and in the order of an entity",
    async (adapter) => {
      const tables = await engine.open();
      const { inbox, ended, stores } = processOf(tables);
      const began: string[] = [];
      inbox
        .on(buyer, ({ event_id }, { tx, attempt }) => {
          began.push(event_id);
          return after(write(tables, tx, event_id), () => {
            if (event_id === "ev_1" && attempt < 3) throw new Error(`attempt ${attempt}`);
          });
        })
        .onAtLeastOnce(seller, async ({ event_id }, { commit }) => {
          await commit((tx) => write(tables, tx, event_id) as undefined);
        });
      const opened = await adapter.open(webhookScene(false, { options: { handler: inbox } })());
      const body = envelope([buyerEvent("ev_1", "b1"), buyerEvent("ev_2", "b1"), sellerEvent("ev_3")]);
      expect((await opened.send(deliver(body))).status).toBe(200);
      expect((await opened.send(deliver(body))).status).toBe(200);
      await ended(["ev_1", "ev_2", "ev_3"]);
      expect((await opened.send(deliver(body))).status).toBe(200);
      await opened.close();
      expect(began).toEqual(["ev_1", "ev_1", "ev_1", "ev_2"]);
      expect(new Set(await tables.paid())).toEqual(new Set(["ev_1", "ev_2", "ev_3"]));
      expect((await stores.work.read("inbox", "ev_1"))?.failures.map(({ reason }) => reason)).toEqual([
        "attempt 1",
        "attempt 2",
      ]);
    },
  );

  test.each(adapters)(
    "behind $name keeps a malformed event as a dead letter at once, and does the others",
    async (adapter) => {
      const tables = await engine.open();
      const { inbox, ended, stores } = processOf(tables);
      inbox.on(buyer, ({ event_id }, { tx }) => write(tables, tx, event_id));
      const opened = await adapter.open(webhookScene(false, { options: { handler: inbox } })());
      expect((await opened.send(deliver(besideMalformed))).status).toBe(200);
      await ended(["ev_1", "ev_2"]);
      const dead = async () => (await stores.work.list({ queue: "inbox", state: "dead", limit: 10 })).tasks;
      await eventually(async () => (await dead()).length === malformed.length);
      expect((await opened.send(deliver(besideMalformed))).status).toBe(200);
      await opened.close();
      expect(new Set(await tables.paid())).toEqual(new Set(["ev_1", "ev_2"]));
      expect(new Set((await dead()).map(({ attempts, body }) => `${attempts} ${body}`))).toEqual(
        new Set(malformed.map((text) => `1 {"webhook_id":"wh_1","event":${text}}`)),
      );
    },
  );

  test("whose table is not used commits the events beside a malformed one, which is kept by onDeadLetter", async () => {
    const tables = await engine.open();
    const kept: unknown[] = [];
    const handler = createWebhookHandler({
      stores: tables.process(),
      fallback: "ignore",
      onError: () => {},
      onDeadLetter: async ({ invalid }) => void kept.push(invalid?.raw),
    }).on(buyer, ({ event_id }, { tx }) => write(tables, tx, event_id));
    const opened = await expressAdapter("express 5", express5).open(
      webhookScene(false, { options: { handler } })(),
    );
    expect((await opened.send(deliver(besideMalformed))).status).toBe(200);
    await opened.close();
    expect(new Set(await tables.paid())).toEqual(new Set(["ev_1", "ev_2"]));
    expect(kept).toEqual(malformed.map((text) => JSON.parse(text)));
  });

  test("of two processes that both receive does each event once, and those of an entity in order", async () => {
    const tables = await engine.open();
    const processes = [processOf(tables), processOf(tables)];
    const done: string[] = [];
    for (const { inbox } of processes) {
      inbox.on(buyer, ({ event_id }, { tx }) =>
        after(write(tables, tx, event_id), () => {
          done.push(event_id);
        }),
      );
    }
    const ids = Array.from({ length: 70 }, (_, index) => `ev_${index}`);
    const body = envelope(ids.map((id, index) => buyerEvent(id, `b${index % 7}`)));
    const outcomes = await Promise.all(
      processes.map(({ inbox }) => inbox.handle(parseWebhookEnvelope(Buffer.from(body)))),
    );
    expect(outcomes.map(({ acknowledged }) => acknowledged)).toEqual([true, true]);
    await processes[0]?.ended(ids);
    expect(new Set(await tables.paid())).toEqual(new Set(ids));
    // One that met a conflict ran again.
    const firsts = [...new Set(done.filter((id) => Number(id.slice(3)) % 7 === 0))];
    expect(firsts).toEqual(ids.filter((_, index) => index % 7 === 0));
  });

  test("is worked on by another process than the one that took it", async () => {
    const tables = await engine.open();
    const first = processOf(tables, { receiveOnly: true });
    first.inbox.on(buyer, () => undefined);
    await first.inbox.handle(parseWebhookEnvelope(Buffer.from(envelope())));
    const next = processOf(tables);
    next.inbox.on(buyer, ({ event_id }, { tx }) => write(tables, tx, event_id)).start();
    await next.ended(["ev_1"]);
    expect(await tables.paid()).toEqual(["ev_1"]);
  });

  test("latestOnly lets no older event through, whichever process has it, and both of an equal time", async () => {
    const tables = await engine.open();
    const [handled, stale] = [new Set<string>(), new Set<string>()];
    const handlers = [1, 2, 3].map(() =>
      createWebhookHandler({
        stores: tables.process(),
        fallback: "ignore",
        waitMs: 20_000,
        onError: () => {},
      }).on(
        buyer,
        ({ event_id, timestamp }, { tx }) =>
          after(tables.sql(tx, "DELETE FROM payments"), () =>
            after(write(tables, tx, timestamp.raw), () => void handled.add(event_id)),
          ),
        { latestOnly: { onStale: ({ event_id }) => void stale.add(event_id) } },
      ),
    );
    const times = [5, 1, 9, 3, 7, 9, 2, 8, 4, 6];
    const ids = times.map((at, index) => `ev_${index} at ${at}`);
    const envelopes = times.map((at, index) =>
      parseWebhookEnvelope(Buffer.from(envelope([buyerEvent(ids[index] ?? "", "b1", at)]))),
    );
    for (let round = 0; round < 20; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- as the service repeats what was not done
      const answers = await Promise.all(
        envelopes.map(async (one, index) => handlers[index % 3]?.handle(one)),
      );
      if (answers.every((answer) => answer?.acknowledged === true)) break;
    }
    expect(await tables.paid()).toEqual([buyerEvent("", "", 9).timestamp]);
    expect([...handled]).toEqual(expect.arrayContaining(ids.filter((id) => id.endsWith("9"))));
    expect(new Set([...handled, ...stale])).toEqual(new Set(ids));
  });
});
