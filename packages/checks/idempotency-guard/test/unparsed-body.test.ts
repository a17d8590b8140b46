import { afterEach, describe, expect, test } from "@jest/globals";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody, rawBody } from "@countersign/raw-body";
import type { Express, Request, RequestHandler, Response } from "express";
import { withServer } from "@countersign/test-support/servers/wire.ts";
import { closePlatforms, frameworks, type Framework } from "./kit.ts";

afterEach(closePlatforms);

interface Route {
  readonly framework: Framework;
  readonly between?: readonly RequestHandler[];
  readonly handler: (req: Request, res: Response) => void;
}

function appOf({ framework, between = [], handler }: Route): Express {
  const app = framework();
  const guard = idempotencyGuard({
    store: memoryIdempotencyStore(),
    key: (req) => req.headers["idempotency-key"],
  });
  app.post("/charges", rawBody(), ...between, guard, handler);
  app.use(guardErrors());
  return app;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const charge = (app: Express, contentType = "application/json", body = '{"amount":1}'): Promise<Answer> =>
  withServer(app, async (port) => {
    const response = await fetch(`http://127.0.0.1:${port}/charges`, {
      method: "POST",
      headers: { "Idempotency-Key": "k1", "Content-Type": contentType },
      body,
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  });

describe.each(frameworks)("a handler after rawBody() and the guard on %s", (_name, framework) => {
  test.each([
    {
      name: "a form that no parser has read",
      contentType: "application/x-www-form-urlencoded",
      body: "amount=1",
      status: 415,
    },
    {
      name: "JSON that two parsers could read differently",
      contentType: "application/json",
      body: '{"amount":1,"amount":2}',
      status: 400,
    },
  ])("never gets $name: $status, and the key is free", async ({ contentType, body, status }) => {
    const charged: unknown[] = [];
    const app = appOf({
      framework,
      handler: (req, res) => {
        charged.push(Object(req.body).amount);
        res.status(201).end();
      },
    });
    for (let count = 0; count < 2; count += 1) {
      expect((await charge(app, contentType, body)).status).toBe(status);
    }
    expect(charged).toEqual([]);
  });

  test("reads JSON without a parser, with jsonBody() and with express.json(), and what it sets itself", async () => {
    for (const between of [[], [jsonBody() as RequestHandler], [framework.json()]]) {
      const parsed = appOf({ framework, between, handler: (req, res) => void res.json(req.body) });
      expect((await charge(parsed)).body).toEqual({ amount: 1 });
    }
    const own = appOf({
      framework,
      handler: (req, res) => {
        req.body = { own: JSON.parse(String(req.rawBody)) as unknown };
        res.json({ ...req, body: req.body as unknown }.body);
      },
    });
    expect((await charge(own)).body).toEqual({ own: { amount: 1 } });
  });

  test("may leave req.body alone; a logger that looks after the answer sees none of a form", async () => {
    let seen: unknown = "not asked";
    const app = appOf({
      framework,
      handler: (req, res) => {
        res.on("finish", () => (seen = req.body));
        res.json({ bytes: req.rawBody?.length });
      },
    });
    expect((await charge(app, "text/plain")).body).toEqual({ bytes: 12 });
    expect(seen).toBeUndefined();
  });
});
