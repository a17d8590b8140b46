import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { guardChannelName, GuardError, type GuardEvent } from "@countersign/core";
import { requestAborted } from "@countersign/core/internal";
import { guard, guardErrors } from "@countersign/express";
import type { GuardFunction } from "../dist/guard.js";
import { describe, expect, jest, test } from "@jest/globals";
import type { ErrorRequestHandler, Express } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import supertest from "supertest";
import { withServer } from "@countersign/test-support/servers/wire.ts";

const refusal = new GuardError({ status: 409, code: "already-processed", message: "seen before" });

function pause(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

const lastResort: ErrorRequestHandler = (error: Error, _req, res, _next) => {
  res.status(500).send(`${error.message} (${JSON.stringify(error.cause)})`);
};

function build(factory: ExpressFactory, decide: GuardFunction): Express {
  const app = factory();
  app.get("/", guard("exampleGuard", decide), (_req, res) => {
    res.send("paid");
  });
  app.use(guardErrors());
  app.use(lastResort);
  return app;
}

// Express catches these itself, on node:http nobody does: behind a promise the process would end with the request.
describe("guard on node:http, where what comes after it throws", () => {
  const statusesOf = async (next: (res: ServerResponse) => void): Promise<unknown[]> => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const check = guard("exampleGuard", pause);
    const statuses: unknown[] = [];
    await withServer(
      (req, res) => check(req, res, () => next(res)),
      async (port) => {
        for (let round = 0; round < 2; round += 1) {
          // oxlint-disable-next-line no-await-in-loop -- the second finds the process alive
          statuses.push(await statusOf(port));
        }
      },
    );
    statuses.push(warn.mock.calls.length);
    warn.mockRestore();
    return statuses;
  };

  test.each<[string, (res: ServerResponse) => void, unknown]>([
    [
      "an answer that Node refuses",
      (res) => {
        res.setHeader("Content-Length", 4);
        res.statusMessage = "\u20ac";
        res.end("paid");
      },
      500,
    ],
    [
      "an answer that has begun",
      (res) => {
        res.write("pa");
        throw new Error("oops");
      },
      "cut",
    ],
    [
      "a response that refuses any answer",
      (res) => {
        res.writeHead = () => {
          throw new Error("oops");
        };
        res.end("paid");
      },
      "cut",
    ],
  ])("answers 500, or cuts the connection: %s", async (_name, next, status) => {
    expect(await statusesOf(next)).toEqual([status, status, 2]);
  });
});

async function statusOf(port: number): Promise<number | string> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    await answer.text();
    return answer.status;
  } catch {
    return "cut";
  }
}

describe.each(expressVersionsWith(express4))("guard on %s", (_version, factory) => {
  test.each<[string, GuardFunction]>([
    ["returns", () => undefined],
    ["resolves", async () => {}],
    ["resolves later", pause],
  ])("calls the handler when the function %s", async (_name, decide) => {
    await supertest(build(factory, decide)).get("/").expect(200, "paid");
  });

  test.each<[string, GuardFunction]>([
    [
      "throws",
      () => {
        throw refusal;
      },
    ],
    ["rejects", () => Promise.reject(refusal)],
    [
      "rejects later",
      async () => {
        await pause();
        throw refusal;
      },
    ],
  ])("answers the refusal when the function %s", async (_name, decide) => {
    const response = await supertest(build(factory, decide)).get("/").expect(409);
    expect(response.body).toMatchObject({ code: "already-processed" });
  });

  test.each([
    ["undefined", undefined],
    ["null", null],
    ["the word route, with which Express skips a route", "route"],
    ["the word router", "router"],
    ["a string", "no"],
    ["an object", { status: 200 }],
  ])("never passes a request whose function throws %s", async (_name, thrown) => {
    const message = `exampleGuard threw a value that is no Error (${JSON.stringify(thrown)})`;
    const decides: readonly GuardFunction[] = [
      () => {
        // oxlint-disable-next-line typescript/only-throw-error -- what the test is about
        throw thrown;
      },
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what the test is about
      () => Promise.reject(thrown),
    ];
    for (const decide of decides) {
      // oxlint-disable-next-line no-await-in-loop -- one server at a time
      await supertest(build(factory, decide)).get("/").expect(500, message);
    }
  });

  test("hands another error on as it is", async () => {
    const app = build(factory, () => {
      throw new RangeError("out of range", { cause: "test" });
    });
    await supertest(app).get("/").expect(500, 'out of range ("test")');
  });

  test("ends an aborted request in silence", async () => {
    let finish: (() => void) | undefined;
    const decided = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const answered = jest.fn();
    const app = factory();
    app.post(
      "/",
      guard("exampleGuard", async (req) => {
        await new Promise((resolve) => {
          req.once("close", resolve).resume();
        });
        setImmediate(() => finish?.());
        throw new GuardError({ status: 400, code: requestAborted, message: "the client left" });
      }),
      () => answered("handler"),
    );
    app.use(guardErrors({ onReject: () => answered("onReject") }));
    app.use(((_error, _req, _res, _next) => answered("error handler")) satisfies ErrorRequestHandler);
    app.use(() => answered("not found"));
    await withServer(app, async (port) => {
      const socket = connect(port, "127.0.0.1");
      socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf", () => socket.destroy());
      await decided;
    });
    expect(answered).not.toHaveBeenCalled();
  });
});

describe("guard", () => {
  test("names the middleware after the guard", () => {
    expect(guard("exampleGuard", () => undefined).name).toBe("exampleGuardMiddleware");
  });

  test("takes no turn of the event loop for a function that returns", () => {
    const next = jest.fn();
    guard("exampleGuard", () => undefined)({} as never, {} as never, next);
    expect(next.mock.calls).toEqual([[]]);
  });

  test("calls next once when next itself throws", async () => {
    const next = jest.fn(() => {
      throw new Error("from the next handler");
    });
    const middleware = guard("exampleGuard", () => undefined);
    expect(() => middleware({} as never, {} as never, next)).toThrow("from the next handler");
    expect(next).toHaveBeenCalledTimes(1);
  });

  test("gives the request and the response to the function", () => {
    const decide = jest.fn<GuardFunction>();
    const req = { name: "req" };
    const res = { name: "res" };
    guard("exampleGuard", decide)(req as never, res as never, () => undefined);
    expect(decide.mock.calls).toEqual([[req, res]]);
  });
});

/** The events and, as the word `next`, the call of the next handler, in their order. */
async function eventsOf(decide: GuardFunction, res: object = {}): Promise<(GuardEvent | "next")[]> {
  const events: (GuardEvent | "next")[] = [];
  const onEvent = (event: unknown): void => {
    events.push(event as GuardEvent);
  };
  subscribe(guardChannelName, onEvent);
  try {
    const next = (): unknown => events.push("next");
    guard("exampleGuard", decide)({ url: "/" } as never, res as never, next);
    await pause();
    await pause();
  } finally {
    unsubscribe(guardChannelName, onEvent);
  }
  return events;
}

describe("the events of guard", () => {
  const unavailable = new GuardError({ status: 503, code: "store-unavailable", message: "no store" });
  const aborted = new GuardError({ status: 400, code: requestAborted, message: "gone" });
  const failure = new Error("broken");

  describe.each<[string, (error: Error | undefined) => GuardFunction]>([
    [
      "sync",
      (error) => () => {
        if (error !== undefined) throw error;
      },
    ],
    [
      "async",
      (error) => async () => {
        await pause();
        if (error !== undefined) throw error;
      },
    ],
  ])("of a function that is %s", (_kind, decideWith) => {
    test.each([
      ["a pass", undefined, { outcome: "pass", code: undefined, status: undefined }],
      ["a refusal", refusal, { outcome: "reject", code: "already-processed", status: 409 }],
      ["no decision", unavailable, { outcome: "error", code: "store-unavailable", status: 503 }],
      ["another error", failure, { outcome: "error", code: "unexpected-error", status: 500 }],
    ])("tell of %s before what follows begins", async (_name, error, expected) => {
      const [event, following, ...more] = await eventsOf(decideWith(error));
      expect(event).toMatchObject({ ...expected, guard: "exampleGuard", req: { url: "/" }, error });
      expect((event as GuardEvent).durationMs).toBeGreaterThanOrEqual(0);
      expect([following, more]).toEqual(["next", []]);
    });

    test("tell of an aborted request, which nothing follows", async () => {
      const events = await eventsOf(decideWith(aborted), { destroyed: true });
      expect(events).toHaveLength(1);
      expect(events[0]).toMatchObject({
        outcome: "reject",
        code: requestAborted,
        status: 400,
        error: aborted,
      });
    });

    test("leave the app its own error of that code, whose client waits", async () => {
      expect(await eventsOf(decideWith(aborted))).toEqual([expect.objectContaining({ status: 400 }), "next"]);
    });
  });

  test("cost nothing without subscribers", async () => {
    const now = jest.spyOn(performance, "now");
    try {
      guard("exampleGuard", () => undefined)({} as never, {} as never, () => undefined);
      expect(now).not.toHaveBeenCalled();
    } finally {
      now.mockRestore();
    }
  });
});
