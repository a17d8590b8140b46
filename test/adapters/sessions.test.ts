// express-session between the guard and its handler, in lease mode. It replaces res.end, sends all but the last byte, and ends the response
// when its store has saved the session; a save that fails is a next(error) after the response.
import { AsyncResource } from "node:async_hooks";
import { createRequire } from "node:module";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard, refuse } from "@countersign/idempotency-guard";
import { describe, expect, test } from "@jest/globals";
import express5, { type ErrorRequestHandler, type RequestHandler } from "express";
import express4 from "express4";
import { afterTest } from "../support/runs/after-test.ts";
import { close, listen, send } from "../support/servers/http-client.ts";

interface SessionOptions {
  readonly secret: string;
  readonly resave: boolean;
  readonly saveUninitialized: boolean;
  readonly store: object;
}

interface SessionFactory {
  (options: SessionOptions): RequestHandler;
  readonly Store: new () => object;
}

interface WithSession {
  readonly session: { destroy(destroyed: () => void): void };
}

// Its types would demand a session of each request of all tests: they are not imported.
const require = createRequire(import.meta.url);
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as its guide has it
const session = require("express-session") as SessionFactory;

type Callback = (error?: unknown) => void;
type Save = (saved: Callback) => void;

/** A connection that was opened when the process started: what it calls back has no request's context. */
const connection = new AsyncResource("CONNECTION");
const later = (saved: Callback, error?: Error): void =>
  void connection.runInAsyncScope(() => setTimeout(() => saved(error), 5));

const saves: Readonly<Record<string, Save>> = {
  "saves immediately": (saved) => saved(),
  "saves later": (saved) => later(saved),
  "fails immediately": (saved) => saved(new Error("the session is lost")),
  "fails later": (saved) => later(saved, new Error("the session is lost")),
};

class SessionStore extends session.Store {
  readonly #save: Save;

  constructor(save: Save) {
    super();
    this.#save = save;
  }

  get(_id: string, found: (error: unknown, session?: null) => void): void {
    found(null, null);
  }

  set(_id: string, _session: unknown, saved: Callback = () => undefined): void {
    this.#save(saved);
  }

  destroy(_id: string, destroyed: Callback = () => undefined): void {
    this.#save(destroyed);
  }
}

const answering: Readonly<Record<string, ErrorRequestHandler>> = {
  "500": (_error, _req, res, next) => (res.headersSent ? next(_error) : void res.status(500).json({})),
  "200": (_error, _req, res, next) => (res.headersSent ? next(_error) : void res.json({ code: -1 })),
};

type End = "done" | "held" | "free";

interface Row {
  readonly how: string;
  readonly pay: RequestHandler;
  readonly status: number;
  readonly hold: End;
  readonly rerun: End;
}

const bankFailed = (): never => {
  throw new Error("the bank said no");
};

const rows: readonly Row[] = [
  {
    how: "responds 200 with a body",
    pay: (_req, res) => void res.json({ paid: true }),
    status: 200,
    hold: "done",
    rerun: "done",
  },
  {
    how: "responds 204",
    pay: (_req, res) => void res.status(204).end(),
    status: 204,
    hold: "done",
    rerun: "done",
  },
  {
    how: "responds 200 in pieces",
    pay(_req, res) {
      res.write("paid");
      res.end(" in full");
    },
    status: 200,
    hold: "done",
    rerun: "done",
  },
  {
    how: "responds 200 and ends the session",
    pay(req, res) {
      (req as unknown as WithSession).session.destroy(() => res.json({ paid: true }));
    },
    status: 200,
    hold: "done",
    rerun: "done",
  },
  {
    how: "responds 422",
    pay: (_req, res) => void res.status(422).json({}),
    status: 422,
    hold: "free",
    rerun: "free",
  },
  {
    how: "responds 503",
    pay: (_req, res) => void res.status(503).json({}),
    status: 503,
    hold: "held",
    rerun: "free",
  },
  { how: "throws", pay: bankFailed, status: 500, hold: "held", rerun: "free" },
  {
    how: "throws later",
    pay: (_req, _res, next) => void setTimeout(() => next(new Error("the bank said no")), 5),
    status: 500,
    hold: "held",
    rerun: "free",
  },
  {
    how: "throws refuse()",
    pay() {
      throw refuse("no-such-account");
    },
    status: 400,
    hold: "free",
    rerun: "free",
  },
];

const frameworks = { "express 5": express5, "express 4": express4 };
const places = Object.entries(frameworks).flatMap(([framework, make]) =>
  Object.entries(saves).map(([how, save]) => ({ framework, make, how, save })),
);
const plays = rows.flatMap((row) =>
  Object.keys(answering).flatMap((by) =>
    (["hold", "rerun"] as const).map((recovery) => ({ ...row, by, recovery })),
  ),
);

describe.each(places)("a session whose store $how after the guard on $framework", ({ make, save }) => {
  test.each(plays)(
    "ends the key by the table under $recovery when the handler $how and the error handler responds $by",
    async ({ pay, status, by, recovery, ...row }) => {
      let ran = 0;
      const store = memoryIdempotencyStore();
      const app = make();
      app.set("env", "test");
      app.post(
        "/pay",
        idempotencyGuard({ store, recovery, key: () => "k", fingerprint: () => "f", waitMs: 0 }),
        session({
          secret: "test-secret-test-secret",
          resave: true,
          saveUninitialized: true,
          store: new SessionStore(save),
        }),
        (req, res, next) => {
          ran += 1;
          return pay(req, res, next);
        },
      );
      app.use(guardErrors());
      app.use(answering[by] as ErrorRequestHandler);
      const { server, port } = await listen(app);
      afterTest(() => close(server));
      const answer = await send(port, { method: "POST", path: "/pay", headers: [], body: Buffer.alloc(0) });
      expect({ status: answer.status, state: store.read("k")?.state ?? "free", ran }).toEqual({
        status,
        state: row[recovery],
        ran: 1,
      });
    },
  );
});
