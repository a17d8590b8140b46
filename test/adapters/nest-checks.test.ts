// Single checks in Nest: the page's example, and how a refusal reaches the caller with a filter and without one.
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { GuardError } from "@countersign/core";
import { guard } from "@countersign/express";
import { captureRawBody, payoutEndpoint } from "countersign/payout";
import { refusal } from "@countersign/fastify";
import { signPayloadHeaders } from "@countersign/webhook-hmac";
import { describe, expect, jest, test } from "@jest/globals";
import {
  BadRequestException,
  Catch,
  Controller,
  Module,
  Post,
  RequestMethod,
  type ArgumentsHost,
  type ExceptionFilter,
  type INestApplication,
  type MiddlewareConsumer,
} from "@nestjs/common";
import { BaseExceptionFilter, NestFactory } from "@nestjs/core";
import { ExpressAdapter, type NestExpressApplication } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import type { FastifyReply, FastifyRequest } from "fastify";
import Database from "libsql";
import { createApp, RefusalFilter } from "../../examples/nestjs/dist/checks.js";
import { afterTest } from "../support/runs/after-test.ts";
import { send } from "../support/servers/http-client.ts";
import { payoutScene, signPayout } from "./payout-scene.ts";

async function post(app: INestApplication, path: string, init: RequestInit = {}) {
  if (!Object(app.getHttpServer()).listening) await app.listen(0, "127.0.0.1");
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", ...init });
  const { status, headers } = response;
  return { status, retryAfter: headers.get("retry-after"), body: await response.text() };
}

describe("the example of single checks in Nest", () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const handle = jest.fn<(event: unknown) => void>();

  async function example() {
    const app = await createApp(new Database(":memory:"), [secret], handle);
    app.useLogger(false);
    afterTest(() => app.close());
    handle.mockReset();
    return (body: string, id = "72d3162e", signedWith = secret) =>
      post(app, "/webhooks/github", {
        body,
        headers: {
          "Content-Type": "application/json",
          "X-GitHub-Delivery": id,
          ...signPayloadHeaders(Buffer.from(body), signedWith, { scheme: "github" }),
        },
      });
  }

  const problem = (status: number, title: string): string =>
    `{"type":"about:blank","title":"${title}","status":${status}}`;

  test("handles a delivery once, a large one too", async () => {
    const deliver = await example();
    const received = { status: 200, retryAfter: null, body: '{"received":true}' };
    expect(await deliver('{"a":"é😀"}')).toEqual(received);
    expect(await deliver('{"a":2}')).toEqual({ ...received, body: "" });
    const large = JSON.stringify({ text: "x".repeat(200_000) });
    expect(await deliver(large, "8f1c0b4a")).toEqual(received);
    expect(handle.mock.calls).toEqual([[{ a: "é😀" }], [JSON.parse(large)]]);
  });

  test("answers a wrong signature as every check does", async () => {
    const deliver = await example();
    expect(await deliver("{}", "72d3162e", "another secret of these tests")).toEqual({
      status: 401,
      retryAfter: null,
      body: problem(401, "Unauthorized"),
    });
    expect(handle).not.toHaveBeenCalled();
  });

  test("says when to come again while an operator has to decide", async () => {
    const deliver = await example();
    handle.mockImplementation(() => {
      throw new Error("the mail service is down");
    });
    expect(await deliver("{}")).toMatchObject({
      status: 500,
      body: expect.stringMatching(/"statusCode":500/),
    });
    const again = await deliver("{}");
    expect(again).toMatchObject({ status: 503, retryAfter: "300" });
    expect(JSON.parse(again.body)).toEqual({
      ...JSON.parse(problem(503, "Service Unavailable")),
      code: "held",
    });
  });

  test("leaves an exception of the controller to Nest", async () => {
    const deliver = await example();
    handle.mockImplementation(() => {
      throw new BadRequestException("no such repository");
    });
    const body = expect.stringMatching(/"message":"no such repository"/);
    expect(await deliver("{}")).toMatchObject({ status: 400, body });
  });
});

// On Fastify Nest's filters have Fastify's request and reply.
class FastifyFilter extends BaseExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>(), () =>
      super.catch(error, host),
    );
  }
}
Catch()(FastifyFilter);
const answer = refusal({});

const busy = guard("busyGuard", () => {
  const headers = { "Retry-After": "7" };
  throw new GuardError({
    status: 503,
    code: "in-flight",
    message: "m",
    headers,
    problem: { code: "in-flight" },
  });
});

/** An app whose one route is behind a check that refuses. */
async function refusingApp(adapter: ExpressAdapter | FastifyAdapter, place: "configure()" | "app.use") {
  class Orders {
    pay(): object {
      return { paid: true };
    }
  }
  Controller("orders")(Orders);
  Post()(Orders.prototype, "pay", Object.getOwnPropertyDescriptor(Orders.prototype, "pay") ?? {});
  class App {
    configure(consumer: MiddlewareConsumer): void {
      if (place === "configure()") consumer.apply(busy).forRoutes(Orders);
    }
  }
  Module({ controllers: [Orders] })(App);
  const options = { logger: false, abortOnError: false } as const;
  const app = await NestFactory.create(App, adapter as ExpressAdapter, options);
  if (place === "app.use") app.use("/orders", busy);
  afterTest(() => app.close());
  return app;
}

describe.each([
  ["Express", () => new ExpressAdapter(), (app: INestApplication) => new RefusalFilter(app.getHttpAdapter())],
  ["Fastify", () => new FastifyAdapter(), (app: INestApplication) => new FastifyFilter(app.getHttpAdapter())],
] as const)("a refusal in Nest on %s", (_platform, adapter, filterOf) => {
  test.each(["configure()", "app.use"] as const)(
    "keeps its status, code and Retry-After by the filter: %s",
    async (place) => {
      const app = await refusingApp(adapter(), place);
      const filter: ExceptionFilter = filterOf(app);
      app.useGlobalFilters(filter);
      const { body, ...answered } = await post(app, "/orders");
      expect(answered).toEqual({ status: 503, retryAfter: "7" });
      expect(JSON.parse(body)).toEqual({
        type: "about:blank",
        title: "Service Unavailable",
        status: 503,
        code: "in-flight",
      });
    },
  );

  test.each(["configure()", "app.use"] as const)(
    "loses code and Retry-After without a filter: %s",
    async (place) => {
      const answered = await post(await refusingApp(adapter(), place), "/orders");
      const body = '{"statusCode":503,"message":"Service Unavailable"}';
      expect(answered).toEqual({ status: 503, retryAfter: null, body });
    },
  );
});

describe("a payout in Nest on Express, by configure()", () => {
  test.each<
    [parsers: string, options: object, prepare: (app: NestExpressApplication) => unknown, status: number]
  >([
    ["rawBody: true", { rawBody: true }, () => undefined, 200],
    [
      "useBodyParser() with captureRawBody",
      { bodyParser: false },
      (app) => app.useBodyParser("json", { verify: captureRawBody }),
      200,
    ],
    ["Nest's own parser as it is", {}, () => undefined, 500],
  ])("meets %s", async (_parsers, options, prepare, status) => {
    const receive = payoutEndpoint(payoutScene()().options as Parameters<typeof payoutEndpoint>[0]);
    class App {
      configure(consumer: MiddlewareConsumer): void {
        const pay = (_req: unknown, res: { json(value: object): void }): void => res.json({ paid: true });
        const path = { path: "api/v1/transaction", method: RequestMethod.POST };
        consumer.apply(receive, pay).forRoutes(path);
      }
    }
    Module({})(App);
    const app = await NestFactory.create<NestExpressApplication>(App, new ExpressAdapter(), {
      logger: false,
      abortOnError: false,
      ...options,
    });
    afterTest(() => app.close());
    prepare(app);
    await app.listen(0, "127.0.0.1");
    const { port } = app.getHttpServer().address() as AddressInfo;
    expect((await send(port, signPayout())).status).toBe(status);
  });
});
