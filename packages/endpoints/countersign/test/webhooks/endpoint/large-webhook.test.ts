import { isGuardError } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import { webhookHmac } from "@countersign/webhook-hmac";
import {
  parseWebhookEnvelope,
  receiveWebhook,
  webhookEndpoint,
  type WebhookHandler,
} from "countersign/webhooks";
import { describe, expect, test } from "@jest/globals";
import type { RequestHandler } from "express";
import { exchange, withServer } from "@countersign/test-support/servers/wire.ts";
import {
  delivery,
  envelope as bodyOfIds,
  expressVersions,
  handlerOf,
  optionsWith,
  path,
  secret,
  siteOf,
  success,
} from "./endpoint.ts";
import {
  badEvent,
  collectNotices,
  countTurns,
  createHandler,
  envelope,
  memoryStore,
  outcomes,
  setClock,
  storeKinds,
} from "../events/event-kit.ts";

const many = 400;

function ids(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `ev_${index}`);
}

describe.each(storeKinds)("a webhook of many events on %s", (_name, createStore) => {
  test.each([
    ["that are handled at once", {}, ids(many), "done"],
    ["that are handled ten at a time", { concurrency: 10 }, ids(many), "done"],
    ["that are malformed", {}, ids(many).map(badEvent), "dead-lettered"],
    ["that fail and are counted", { maxAttempts: 2, onDeadLetter: () => {} }, ids(many), "failed"],
  ] as const)("%s gives others their turn", async (_kind, options, events, outcome) => {
    const handler = createHandler({ ...options, store: createStore() }).on("buyer.status_changed", () => {
      if (outcome === "failed") throw new Error("no such buyer");
    });
    const received = envelope(...events);
    collectNotices();
    const turns = countTurns();
    setClock(1);
    const handled = await handler.handle(received);
    expect(turns()).toBeGreaterThan(many / 10);
    expect(outcomes(handled)).toEqual(events.map(() => outcome));
  });

  test("gives others their turn also when all of it was handled before", async () => {
    const handler = createHandler({ store: createStore() }).on("buyer.status_changed", () => {});
    const received = envelope(...ids(many));
    await handler.handle(received);
    const turns = countTurns();
    setClock(1);
    expect(new Set(outcomes(await handler.handle(received)))).toEqual(new Set(["duplicate"]));
    expect(turns()).toBeGreaterThan(many / 10);
  });
});

test("webhooks at one time share a turn of the event loop: each takes its part of it", async () => {
  let inTurn = 0;
  let most = 0;
  const turns = countTurns();
  let turn = turns();
  const handler = createHandler({ store: memoryStore() }).on("buyer.status_changed", () => {
    inTurn = turns() === turn ? inTurn + 1 : 1;
    turn = turns();
    most = Math.max(most, inTurn);
  });
  const webhooks = Array.from({ length: 20 }, (_, index) =>
    envelope(...ids(20).map((id) => `${id}_${index}`)),
  );
  setClock(1);
  const handled = await Promise.all(webhooks.map(async (webhook) => handler.handle(webhook)));
  expect(handled.every(({ acknowledged }) => acknowledged)).toBe(true);
  // A slice has 8 ms, and each event looks at the clock.
  expect(most).toBeLessThanOrEqual(8);
});

describe.each(expressVersions)("a webhook of many events on %s", (_version, factory) => {
  test("lets the server answer others before it is handled", async () => {
    const log: string[] = [];
    const handler = handlerOf(({ event_id }) => void log.push(event_id));
    const app = siteOf({ factory }, optionsWith({ hmac: { limit: "1mb" }, handler }));
    app.get("/health", (_req, res) => {
      log.push("health");
      res.end();
    });
    await withServer(app, async (port) => {
      setClock(1);
      const answer = exchange(port, delivery({ body: bodyOfIds(...ids(1_000)) }));
      while (log.length === 0) {
        // oxlint-disable-next-line no-await-in-loop -- until the first event is handled
        await new Promise((resolve) => setImmediate(resolve));
      }
      const health = exchange(port, "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      expect(await answer).toBe(success);
      expect(await health).toMatch(/^HTTP\/1.1 200 /);
    });
    expect(log).toHaveLength(1_001);
    expect(log.at(-1)).not.toBe("health");
  });

  test("gives others their turn while its events are read", async () => {
    const turns = countTurns();
    let [verified, read] = [0, 0];
    const inner = handlerOf();
    const handler: WebhookHandler = {
      on: () => handler,
      onOther: () => handler,
      onAny: () => handler,
      drain: inner.drain,
      handle: (received) => {
        read = turns();
        expect(received.events).toHaveLength(500);
        expect(received.invalid).toHaveLength(500);
        return inner.handle({ ...received, invalid: [] });
      },
    };
    const mark: RequestHandler = (_req, _res, next) => {
      verified = turns();
      setClock(1);
      next();
    };
    const app = factory();
    app.all(path, webhookHmac({ secret, limit: "1mb" }), mark, receiveWebhook(handler));
    const events = ids(1_000).map((id, index) => (index % 2 === 0 ? wire(id) : badEvent(id)));
    const body = JSON.stringify({ webhook_id: "wh_1", timestamp: "2024-01-02T03:04:05Z", events });
    await withServer(app, async (port) => {
      expect(await exchange(port, delivery({ body }))).toBe(success);
    });
    expect(read - verified).toBeGreaterThan(50);
  });

  describe("beyond maxEvents", () => {
    test("is 413 by receiveWebhook too", async () => {
      const app = factory();
      app.all(path, webhookHmac({ secret }), receiveWebhook(handlerOf(), { maxEvents: 1 }));
      app.use(guardErrors());
      const answer = await withServer(app, (port) => exchange(port, delivery({ body: bodyOfIds("a", "b") })));
      expect(answer).toMatch(/^HTTP\/1.1 413 /);
    });
  });
});

describe("maxEvents", () => {
  test.each([0, -1, 1.5, Number.NaN, 2_501, "10", null])("refuses %p", (maxEvents) => {
    const wrong = { maxEvents: maxEvents as number };
    expect(() => webhookEndpoint(optionsWith(wrong))).toThrow(/^webhookEndpoint: option maxEvents must/);
    expect(() => receiveWebhook(handlerOf(), wrong)).toThrow(/^receiveWebhook: option maxEvents must/);
    expect(() => parseWebhookEnvelope(Buffer.from("{}"), wrong)).toThrow(
      /^parseWebhookEnvelope: option maxEvents must/,
    );
  });

  test("refuses another option", () => {
    const wrong = { maxEvent: 1 } as object;
    expect(() => receiveWebhook(handlerOf(), wrong)).toThrow("receiveWebhook: unknown option maxEvent");
    expect(() => parseWebhookEnvelope(Buffer.from("{}"), wrong)).toThrow("unknown option maxEvent");
  });
});

describe("parseWebhookEnvelope", () => {
  function refusalOf(text: string, options = {}): unknown {
    try {
      return parseWebhookEnvelope(Buffer.from(text), options).events.length;
    } catch (error) {
      return isGuardError(error) ? `${error.status} ${error.code}` : error;
    }
  }

  test("takes so many events, and not one more", () => {
    expect(refusalOf(bodyOfIds(...ids(1_000)))).toBe(1_000);
    expect(refusalOf(bodyOfIds(...ids(1_001)))).toBe("413 events-too-many");
    expect(refusalOf(bodyOfIds(...ids(1_001)), { maxEvents: 1_001 })).toBe(1_001);
    expect(refusalOf(bodyOfIds(...ids(3)), { maxEvents: 2 })).toBe("413 events-too-many");
  });

  // The parser builds all of it in one go.
  test.each([
    ["members", `{"x":{${fill(20_001, (index) => `"${index}":1`)}}}`],
    ["arrays", `{"x":[${fill(20_001, () => "[]")}]}`],
    ["objects", `{"x":[${fill(10_001, () => '{"a":{}}')}]}`],
    ["numbers", `{"events":[${fill(20_001, () => "1")}]}`],
  ])("refuses more than 20,000 %s before it builds them", (_name, text) => {
    expect(refusalOf(text)).toBe("413 json-too-many-values");
    expect(refusalOf(text, { maxEvents: 2_500 })).toBe("400 envelope-invalid");
  });

  test("takes further fields of that many values", () => {
    const text = bodyOfIds("a").replace(/\}$/, `,"x":[${fill(19_000, () => "1")}]}`);
    expect(refusalOf(text)).toBe(1);
  });
});

function fill(count: number, value: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => value(index)).join(",");
}

function wire(event_id: string) {
  return { ...badEvent(event_id), data: { buyer_id: "b", old_status: "PENDING", new_status: "ACTIVE" } };
}
