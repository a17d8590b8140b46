// node test/consumers/newest-nest.mjs, in a folder that has Nest 12, reflect-metadata and rxjs: what the tests say of Nest 11 in lease mode, on a Nest
// of ES modules. Not in jest, which has a registry of modules of its own.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, retryLater } from "@countersign/idempotency-guard";
import { refusal } from "@countersign/fastify";
import { webhookHmac } from "@countersign/webhook-hmac";

process.env.COUNTERSIGN_STDERR = "off";
const found = createRequire(path.join(process.cwd(), "app.js"));
const load = (name) => import(pathToFileURL(found.resolve(name)).href);

await load("reflect-metadata");
const { Catch, Controller, HttpException, Module, Post, UnprocessableEntityException } =
  await load("@nestjs/common");
const { BaseExceptionFilter, NestFactory } = await load("@nestjs/core");
const adapters = {
  Express: (await load("@nestjs/platform-express")).ExpressAdapter,
  Fastify: (await load("@nestjs/platform-fastify")).FastifyAdapter,
};

/** A controller that does `act`, behind a middleware, as an app that listens. */
async function listening(adapter, { act, middleware, filters = [] }) {
  class Payouts {
    async pay() {
      return act();
    }
  }
  Controller()(Payouts);
  Post("pay")(Payouts.prototype, "pay", Object.getOwnPropertyDescriptor(Payouts.prototype, "pay"));
  class App {
    configure(consumer) {
      consumer.apply(middleware).forRoutes(Payouts);
    }
  }
  Module({ controllers: [Payouts] })(App);
  const app = await NestFactory.create(App, new adapters[adapter](), { logger: false, bodyParser: false });
  for (const filter of filters) app.useGlobalFilters(filter(app));
  await app.listen(0, "127.0.0.1");
  return app;
}

async function post(app) {
  const answer = await fetch(`${await app.getUrl()}/pay`, { method: "POST" });
  return { status: answer.status, body: await answer.text() };
}

const responding = (status) => () => {
  class Filter {
    catch(_error, host) {
      host.switchToHttp().getResponse().status(status).send({});
    }
  }
  Catch()(Filter);
  return new Filter();
};

const ends = [
  ["an exception that Nest answers 422", new UnprocessableEntityException("no"), [], 422, "held"],
  [
    "an exception that a filter answers 200",
    new UnprocessableEntityException("no"),
    [responding(200)],
    500,
    "held",
  ],
  ["an exception that a filter answers 404", new Error("no"), [responding(404)], 404, "held"],
  ["retryLater()", retryLater("closed"), [], 503, "free"],
];
for (const adapter of Object.keys(adapters)) {
  for (const [what, error, filters, status, state] of ends) {
    const store = memoryIdempotencyStore();
    let runs = 0;
    const once = idempotencyGuard({ store, key: () => "k", fingerprint: () => "f", waitMs: 0 });
    const act = () => {
      runs += 1;
      throw error;
    };
    const app = await listening(adapter, { act, middleware: once, filters });
    assert.equal((await post(app)).status, status, `${what}, on ${adapter}`);
    assert.equal(store.read("k")?.state ?? "free", state, `${what}, on ${adapter}: the key`);
    await post(app);
    assert.equal(runs, state === "held" ? 1 : 2, `${what}, on ${adapter}: the controller's runs`);
    await app.close();
  }

  // As the guide's filter: a refusal of a middleware is problem details, whatever Nest makes of it in between.
  const answer = adapter === "Express" ? guardErrors() : refusal({});
  class RefusalFilter extends BaseExceptionFilter {
    catch(error, host) {
      const http = host.switchToHttp();
      let isOther = false;
      answer(error, http.getRequest(), http.getResponse(), () => void (isOther = true));
      // Nest's method has the name of one of promises.
      if (isOther) Reflect.apply(super.catch, this, [error, host]);
    }
  }
  Catch()(RefusalFilter);
  const app = await listening(adapter, {
    act: () => {
      throw new HttpException("teapot", 418);
    },
    middleware: webhookHmac({ secret: "test-secret-of-nest" }),
    filters: [(nest) => new RefusalFilter(nest.getHttpAdapter())],
  });
  const refused = await post(app);
  assert.deepEqual(
    { status: refused.status, body: JSON.parse(refused.body) },
    { status: 401, body: { type: "about:blank", title: "Unauthorized", status: 401 } },
    `a refusal, on ${adapter}`,
  );
  await app.close();
}
console.log(
  `Nest ${found("@nestjs/core/package.json").version}: exceptions and refusals on Express and Fastify`,
);
