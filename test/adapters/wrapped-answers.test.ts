// I2, lease mode: middlewares between the guard and its handler that wrap the response, as compression and express-session do. The app may
// have ended an answer that they still work on, and what comes behind it they drop, but not its status and fields.
import { createGzip } from "node:zlib";
import { guardErrors } from "@countersign/express";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { describe, expect, test } from "@jest/globals";
import express5, { type ErrorRequestHandler, type RequestHandler, type Response } from "express";
import express4 from "express4";
import { afterTest } from "../support/runs/after-test.ts";
import { close, listen, send } from "../support/servers/http-client.ts";

type End = (chunk?: unknown, encoding?: unknown) => Response;

/** Encodes the body from the first output on, and ends when that is encoded. */
const compress: RequestHandler = (_req, res, next) => {
  const write = res.write.bind(res) as (chunk: unknown) => boolean;
  const end = res.end.bind(res) as End;
  const writeHead = res.writeHead.bind(res);
  const gzip = createGzip();
  let ended = false;
  gzip.on("data", (chunk) => void write(chunk)).on("end", () => void end());
  res.writeHead = (status: number) => {
    res.setHeader("Content-Encoding", "gzip");
    res.removeHeader("Content-Length");
    return writeHead(status);
  };
  const begin = (): void => void (res.headersSent || res.writeHead(res.statusCode));
  res.write = (chunk: unknown) => {
    begin();
    return gzip.write(chunk);
  };
  res.end = ((chunk: unknown) => {
    if (ended) return res;
    begin();
    ended = true;
    gzip.end(chunk);
    return res;
  }) as typeof res.end;
  next();
};

/** Sends all but the last byte, saves, and sends that. */
const save: RequestHandler = (_req, res, next) => {
  const end = res.end.bind(res) as End;
  let ended = false;
  res.end = ((chunk?: string | Buffer) => {
    if (ended) return res;
    ended = true;
    res.writeHead(res.statusCode);
    const bytes = Buffer.from(chunk ?? " ");
    res.write(bytes.subarray(0, -1));
    setTimeout(() => void end(bytes.subarray(-1)), 5);
    return res;
  }) as typeof res.end;
  next();
};

const fail = new Error("behind the answer");
const paid = { paid: true };
const behind: Readonly<Record<string, RequestHandler>> = {
  "a throw"(_req, res) {
    res.json(paid);
    throw fail;
  },
  "next(error)"(_req, res, next) {
    res.json(paid);
    next(fail);
  },
  "next()"(_req, res, next) {
    res.json(paid);
    next();
  },
};
const answering: Readonly<Record<string, ErrorRequestHandler | undefined>> = {
  "Express itself": undefined,
  "500 by json": (error, _req, res, _next) => void res.status(500).json({ failed: String(error) }),
  "422 without a body": (_error, _req, res, _next) => void res.status(422).end(),
  "200 by json": (_error, _req, res, _next) => void res.json({ code: -1 }),
};

interface Serving {
  readonly make: typeof express5;
  readonly between: RequestHandler;
  readonly pay: RequestHandler;
  readonly answerError?: ErrorRequestHandler | undefined;
}

/** What two requests for one payment are answered, and how often its handler ran. */
async function play({ make, between, pay, answerError }: Serving) {
  let ran = 0;
  const app = make();
  app.set("env", "test");
  const guard = idempotencyGuard({
    store: memoryIdempotencyStore(),
    key: () => "k",
    fingerprint: () => "f",
  });
  app.post("/pay", guard, between, (req, res, next) => {
    ran += 1;
    return pay(req, res, next);
  });
  app.use(guardErrors());
  if (answerError !== undefined) app.use(answerError);
  const { server, port } = await listen(app);
  afterTest(() => close(server));
  const ask = () => send(port, { method: "POST", path: "/pay", headers: [], body: Buffer.alloc(0) });
  const statuses = [(await ask()).status, (await ask()).status];
  return { statuses, ran };
}

const frameworks = { "express 5": express5, "express 4": express4 };
const wrappers = { compression: compress, "a session": save };
const places = Object.entries(frameworks).flatMap(([framework, make]) =>
  Object.entries(wrappers).map(([wrapper, between]) => ({ framework, make, wrapper, between })),
);

describe.each(places)("$wrapper behind the guard on $framework", ({ make, between }) => {
  test("lets an answer out", async () => {
    const pay: RequestHandler = (_req, res) => void res.json(paid);
    expect(await play({ make, between, pay })).toEqual({ statuses: [200, 409], ran: 1 });
  });

  const rows = Object.entries(behind).flatMap(([what, pay]) =>
    Object.entries(answering).map(([by, answerError]) => ({ what, pay, by, answerError })),
  );
  test.each(rows)("$what behind a success, answered by $by: 500, and the key is held", async (row) => {
    expect(await play({ make, between, ...row })).toEqual({ statuses: [500, 503], ran: 1 });
  });

  test("a success that fails half way is not sent as a part of an error's answer", async () => {
    const pay: RequestHandler = (_req, res) => {
      res.writeHead(200, { "Content-Length": 5000 });
      res.write("x".repeat(3000));
      throw fail;
    };
    for (const answerError of Object.values(answering)) {
      // oxlint-disable-next-line no-await-in-loop -- one server after the other
      expect(await play({ make, between, pay, answerError })).toEqual({ statuses: [500, 503], ran: 1 });
    }
  });

  test("a refusal with a throw behind it is answered, and the key is held", async () => {
    const pay: RequestHandler = (_req, res) => {
      res.status(422).json({ refused: true });
      throw fail;
    };
    for (const [by, status] of Object.entries({
      "500 by json": 500,
      "422 without a body": 422,
      "200 by json": 422,
    })) {
      const answerError = answering[by];
      // oxlint-disable-next-line no-await-in-loop -- one server after the other
      const answered = await play({ make, between, pay, answerError });
      expect(answered).toEqual({ statuses: [status, 503], ran: 1 });
    }
  });
});

test.each(Object.entries(frameworks))(
  "on %s an error's answer has no length of the begun one",
  async (_framework, make) => {
    const pay: RequestHandler = (_req, res) => {
      res.setHeader("Content-Length", 5000);
      res.write("x".repeat(3000));
      throw fail;
    };
    const between: RequestHandler = (_req, _res, next) => next();
    const answerError: ErrorRequestHandler = (_error, _req, res, _next) => void res.status(422).end("no");
    expect(await play({ make, between, pay, answerError })).toEqual({ statuses: [422, 503], ran: 1 });
  },
);
