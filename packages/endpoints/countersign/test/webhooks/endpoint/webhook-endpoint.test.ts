import { guardChannelName, type GuardEvent } from "@countersign/core";
import { verifiedCredential } from "@countersign/webhook-basic-auth";
import { signPayload } from "@countersign/webhook-hmac";
import { webhookEndpoint } from "countersign/webhooks";
import { describe, expect, test } from "@jest/globals";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Express, Request, RequestHandler } from "express";
import { exchange, withServer } from "@countersign/test-support/servers/wire.ts";
import {
  appErrors,
  basic,
  delivery,
  envelope,
  handlerOf,
  optionsWith,
  siteOf,
  success,
  type WebhookChanges,
  expressVersions,
} from "./endpoint.ts";

async function answerOf(app: Express, changes: WebhookChanges = {}): Promise<string> {
  return withServer(app, (port) => exchange(port, delivery(changes)));
}

describe.each(expressVersions)("webhookEndpoint on %s", (_version, factory) => {
  test("answers 200 with an empty body once every event is done", async () => {
    const finished: string[] = [];
    const handler = handlerOf(async ({ event_id }) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      finished.push(event_id);
    });
    const body = envelope("ev_1", "ev_2", "ev_1");
    await withServer(siteOf({ factory }, optionsWith({ handler })), async (port) => {
      expect(await exchange(port, delivery({ body }))).toBe(success);
      expect(finished).toEqual(["ev_1", "ev_2"]);
      expect(await exchange(port, delivery({ body }))).toBe(success);
    });
    expect(finished).toEqual(["ev_1", "ev_2"]);
  });

  test("runs on the retry only what failed, and answers 2xx then", async () => {
    const calls: string[] = [];
    const handler = handlerOf(({ event_id }) => {
      calls.push(event_id);
      if (event_id === "ev_2" && calls.length === 2) throw new Error("database down");
    });
    const body = envelope("ev_1", "ev_2", "ev_3");
    await withServer(siteOf({ factory }, optionsWith({ handler })), async (port) => {
      expect(await exchange(port, delivery({ body }))).toMatch(/^HTTP\/1.1 404 /);
      expect(await exchange(port, delivery({ body }))).toBe(success);
    });
    expect(calls).toEqual(["ev_1", "ev_2", "ev_3", "ev_2"]);
  });

  test("keeps a connection for the next webhook", async () => {
    const requests = Buffer.concat([delivery({ keepAlive: true }), delivery({ body: envelope("ev_2") })]);
    const answers = await withServer(siteOf({ factory }, optionsWith()), (port) => exchange(port, requests));
    expect(answers.match(/HTTP\/1.1 200 OK/g)).toHaveLength(2);
  });

  describe("with hide: false", () => {
    test("answers a wrong password with its own status", async () => {
      const app = siteOf({ factory }, optionsWith({ hide: false, basicAuth: { realm: "hooks" } }));
      const answer = await answerOf(app, { headers: { Authorization: basic("service", "wrong") } });
      expect(answer).toMatch(/^HTTP\/1.1 401 [^]*WWW-Authenticate: Basic realm="hooks", charset="UTF-8"/i);
    });

    test("leaves errors that are no guard's to the app", async () => {
      const before: RequestHandler = (_req, _res, next) => {
        next(new Error("session store down"));
      };
      const app = siteOf({ factory, before }, optionsWith({ hide: false }));
      app.use(appErrors);
      expect(await answerOf(app)).toMatch(/\{"app":true\}$/);
    });
  });

  test("admits each of several credentials and secrets, and says on the request which", async () => {
    const seen: unknown[] = [];
    const before: RequestHandler = (req: Request, res, next) => {
      res.on("finish", () => seen.push(req.webhook, verifiedCredential(req)?.username));
      next();
    };
    const options = optionsWith({
      basicAuth: {
        credentials: [
          { username: "new", password: "test-password-2" },
          { username: "service", password: "test-password" },
        ],
      },
      hmac: { secrets: ["test-secret-2", "test-secret"] },
    });
    await withServer(siteOf({ factory, before }, options), async (port) => {
      expect(await exchange(port, delivery())).toBe(success);
      const body = envelope("ev_2");
      const headers = {
        Authorization: basic("new", "test-password-2"),
        "X-Payload-Signature": signPayload(Buffer.from(body), "test-secret-2"),
      };
      expect(await exchange(port, delivery({ body, headers }))).toBe(success);
    });
    expect(seen).toEqual([
      { credentialIndex: 1, secretIndex: 1 },
      "service",
      { credentialIndex: 0, secretIndex: 0 },
      "new",
    ]);
  });

  test("names the events that are not done to onReject, escaped and few", async () => {
    const errors: unknown[] = [];
    const handler = handlerOf(() => Promise.reject(new Error("down")));
    const ids = [`ev_"\u00e9`, "ev_2", "ev_3", "ev_4", "ev_5", "ev_6", "ev_7"];
    const onReject = (error: unknown): number => errors.push(error);
    await answerOf(siteOf({ factory }, optionsWith({ hmac: { limit: "1mb" }, handler, onReject })), {
      body: envelope(...ids),
    });
    expect(errors).toEqual([
      expect.objectContaining({
        status: 503,
        message:
          String.raw`7 of 7 events are not done: "ev_\"\u00e9" failed, "ev_2" failed, "ev_3" failed, ` +
          `"ev_4" failed, "ev_5" failed, and 2 more`,
      }),
    ]);
  });

  test("publishes each guard's verdict", async () => {
    const verdicts: string[] = [];
    const listener = (message: unknown): void => {
      const { guard, outcome } = message as GuardEvent;
      verdicts.push(`${guard} ${outcome}`);
    };
    subscribe(guardChannelName, listener);
    await answerOf(siteOf({ factory }, optionsWith({ addresses: { allow: ["127.0.0.1"] } })));
    unsubscribe(guardChannelName, listener);
    expect(verdicts).toEqual([
      "httpsOnly pass",
      "ipAllowlist pass",
      "webhookBasicAuth pass",
      "webhookRequest pass",
      "webhookHmac pass",
      "receiveWebhook pass",
    ]);
  });

  test("names its middlewares", () => {
    expect(webhookEndpoint(optionsWith()).map(({ name }) => name)).toEqual([
      "webhookEndpointMiddleware",
      "webhookEndpointErrorMiddleware",
    ]);
  });
});
