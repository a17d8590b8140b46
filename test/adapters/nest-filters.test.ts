// Nest answers a throw of its handler inside of the handler that it gives to Express or Fastify: by its own exception filter, or the app's.
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { isGuardError } from "@countersign/core";
import { idempotencyHook } from "@countersign/fastify";
import { memoryIdempotencyStore, type MemoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, refuse, retryLater } from "@countersign/idempotency-guard";
import { describe, expect, test } from "@jest/globals";
import {
  Body,
  Catch,
  Controller,
  Module,
  Post,
  ParseIntPipe,
  RequestMethod,
  StreamableFile,
  UnprocessableEntityException,
  type ArgumentsHost,
  type ExceptionFilter,
  type INestApplication,
  type MiddlewareConsumer,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { afterTest } from "../support/runs/after-test.ts";
import { send } from "../support/servers/http-client.ts";

type Act = () => unknown;

interface Setting {
  readonly store: MemoryIdempotencyStore;
  readonly recovery: "hold" | "rerun";
  readonly act: Act;
  /** What the app's exception filter responds; undefined leaves errors to Nest's. */
  readonly filterStatus: number | undefined;
  readonly isFilterLate: boolean;
}

const once = ({ store, recovery }: Setting) => ({
  store,
  recovery,
  waitMs: 0,
  key: () => "k",
  fingerprint: () => "f",
});

interface AnyResponse {
  status(status: number): { send(body: unknown): unknown };
}

function filterOf({ filterStatus, isFilterLate }: Setting): ExceptionFilter {
  class Filter implements ExceptionFilter {
    async catch(error: unknown, host: ArgumentsHost): Promise<void> {
      const http = host.switchToHttp();
      const res = http.getResponse<AnyResponse>();
      if (isFilterLate) await new Promise((resolve) => setImmediate(resolve));
      res.status(isGuardError(error) ? error.status : (filterStatus ?? 500)).send({});
    }
  }
  Catch()(Filter);
  return new Filter();
}

type Mount = (setting: Setting) => Promise<INestApplication>;

function appOf({ act }: Setting, configure: (consumer: MiddlewareConsumer) => void): new () => object {
  class Payouts {
    async pay(): Promise<unknown> {
      return act();
    }

    checked(): unknown {
      return act();
    }
  }
  const methodOf = (name: string): PropertyDescriptor =>
    Object.getOwnPropertyDescriptor(Payouts.prototype, name) ?? {};
  Controller()(Payouts);
  Post("pay")(Payouts.prototype, "pay", methodOf("pay"));
  Post("checked")(Payouts.prototype, "checked", methodOf("checked"));
  Reflect.defineMetadata?.("design:paramtypes", [Number], Payouts.prototype, "checked");
  Body("amount", ParseIntPipe)(Payouts.prototype, "checked", 0);
  class App {
    configure(consumer: MiddlewareConsumer): void {
      configure(consumer);
    }
  }
  Module({ controllers: [Payouts] })(App);
  return App;
}

const options = { logger: false, abortOnError: false } as const;
const paths = ["pay", "checked"].map((path) => ({ path, method: RequestMethod.POST }));

const mounts: Readonly<Record<string, Mount>> = {
  async "Express, by configure()"(setting) {
    const module = appOf(setting, (consumer) =>
      consumer.apply(idempotencyGuard(once(setting))).forRoutes(...paths),
    );
    return NestFactory.create(module, new ExpressAdapter(), options);
  },
  async "Express, by app.use"(setting) {
    const app = await NestFactory.create(
      appOf(setting, () => undefined),
      new ExpressAdapter(),
      options,
    );
    return app.use(idempotencyGuard(once(setting)));
  },
  async "Fastify, by app.use"(setting) {
    const app = await NestFactory.create(
      appOf(setting, () => undefined),
      new FastifyAdapter(),
      options,
    );
    return app.use(idempotencyGuard(once(setting)));
  },
  async "Fastify, by a hook"(setting) {
    const adapter = new FastifyAdapter();
    const app = await NestFactory.create(
      appOf(setting, () => undefined),
      adapter,
      options,
    );
    adapter.getInstance().addHook("preHandler", idempotencyHook(once(setting)));
    return app;
  },
};

async function play(mount: Mount, { path = "/pay", ...init }: Partial<Setting> & { readonly path?: string }) {
  let ran = 0;
  const store = memoryIdempotencyStore();
  const { act = () => ({ paid: true }), recovery = "hold", filterStatus, isFilterLate = false } = init;
  const setting: Setting = { store, recovery, filterStatus, isFilterLate, act: () => ((ran += 1), act()) };
  const app = await mount(setting);
  afterTest(() => app.close());
  if (filterStatus !== undefined) app.useGlobalFilters(filterOf(setting));
  await app.listen(0, "127.0.0.1");
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  const headers = ["Content-Type", "application/json"];
  const answer = await send(port, { method: "POST", path, headers, body: Buffer.from("{}") });
  return { status: answer.status, state: store.read("k")?.state ?? "free", ran };
}

type End = "done" | "held" | "free";

interface Row {
  readonly how: string;
  readonly act?: Act;
  readonly filterStatus?: number;
  readonly isFilterLate?: boolean;
  readonly status: number;
  readonly hold: End;
  readonly rerun: End;
}

const bankFailed = (): never => {
  throw new Error("the bank said no");
};
const laterFailed = async (): Promise<never> => {
  await new Promise((resolve) => setImmediate(resolve));
  return bankFailed();
};
function failsAfter(pages: number): Readable {
  let given = 0;
  return new Readable({
    read() {
      if (given++ < pages) this.push("a page");
      else this.destroy(new Error("out of paper"));
    },
  });
}
const unknown = { hold: "held", rerun: "free" } as const;

const rows: readonly Row[] = [
  { how: "returns", status: 201, hold: "done", rerun: "done" },
  { how: "throws, and Nest responds", act: bankFailed, status: 500, ...unknown },
  {
    how: "throws 422, and Nest responds",
    act() {
      throw new UnprocessableEntityException();
    },
    status: 422,
    ...unknown,
  },
  ...[bankFailed, laterFailed].flatMap((act) =>
    [false, true].flatMap((isFilterLate) =>
      [200, 303, 400].map((filterStatus) => ({
        how: `throws, ${act.name}, and a filter responds ${filterStatus}, late: ${isFilterLate}`,
        act,
        filterStatus,
        isFilterLate,
        status: filterStatus === 400 ? 400 : 500,
        ...unknown,
      })),
    ),
  ),
  {
    how: "throws refuse()",
    act() {
      throw refuse("no-such-account");
    },
    filterStatus: 200,
    status: 400,
    hold: "free",
    rerun: "free",
  },
  {
    how: "throws retryLater()",
    act() {
      throw retryLater("closed");
    },
    filterStatus: 200,
    status: 503,
    hold: "free",
    rerun: "free",
  },
  {
    how: "throws refuse(), to which Nest's own filter responds",
    act() {
      throw refuse("no-such-account");
    },
    status: 400,
    hold: "free",
    rerun: "free",
  },
  {
    how: "throws retryLater(), to which Nest's own filter responds",
    act() {
      throw retryLater("closed");
    },
    status: 503,
    hold: "free",
    rerun: "free",
  },
];

const plays = rows.flatMap((row) => (["hold", "rerun"] as const).map((recovery) => ({ ...row, recovery })));

describe.each(Object.entries(mounts))("a handler of Nest on %s", (_name, mount) => {
  test.each(plays)("ends the key by the table under $recovery when it $how", async ({ status, ...row }) => {
    const state = row[row.recovery];
    expect(await play(mount, row)).toEqual({ status, state, ran: 1 });
  });

  test.each([0, 1].flatMap((pages) => (["hold", "rerun"] as const).map((recovery) => ({ pages, recovery }))))(
    "holds the key under $recovery when the source of its file fails after $pages pages",
    async ({ pages, recovery }) => {
      const act = (): StreamableFile => new StreamableFile(failsAfter(pages));
      const { status, ...end } = await play(mount, { act, recovery });
      // Nest responds 400 on Express, and Fastify 500.
      expect([400, 500]).toContain(status);
      expect(end).toEqual({ state: "held", ran: 1 });
    },
  );

  test.each([undefined, 200])(
    "frees the key when a pipe refuses its arguments, filter: %p",
    async (filterStatus) => {
      const status = filterStatus === undefined ? 400 : 500;
      const setting = { path: "/checked", ...(filterStatus === undefined ? {} : { filterStatus }) };
      expect(await play(mount, setting)).toEqual({ status, state: "free", ran: 0 });
    },
  );
});
