import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer as createHttp2Server, connect as connectHttp2 } from "node:http2";
import { connect, type AddressInfo, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { GuardError } from "@countersign/core";
import { guard, guardErrors, type GuardRequest, type Middleware } from "@countersign/express";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { ErrorRequestHandler, Request, Response } from "express";
import express4 from "express4";
import { expressVersionsWith } from "@countersign/test-support/runs/express-versions.ts";
import { withServer } from "@countersign/test-support/servers/wire.ts";

const refusal = new GuardError({ status: 400, code: "refused", message: "refused" });
const refuseAtOnce = guard("atOnce", () => {
  throw refusal;
});
// As a reader does that met its limit.
const refuseHalfRead = guard("halfRead", async (req) => {
  await once(req, "data");
  req.pause();
  throw refusal;
});
const guards: [title: string, refuse: Middleware][] = [
  ["before its body was read", refuseAtOnce],
  ["half way through its body", refuseHalfRead],
];

const ownAnswer: ErrorRequestHandler = (_error, _req, res, _next) => {
  res.status(400).json({ refused: true });
};

const expressApps = expressVersionsWith(express4).flatMap(([version, factory]) =>
  [
    { name: "guardErrors()", answer: guardErrors() },
    { name: "the app's own handler", answer: ownAnswer },
    { name: "Express itself", answer: undefined },
  ].map(({ name, answer }) => ({
    server: version,
    name,
    appOf: (refuse: Middleware): RequestListener => {
      const app = factory();
      app.set("env", "test");
      app.post("/", refuse);
      if (answer !== undefined) app.use(answer);
      return app;
    },
  })),
);
const rows = [
  ...expressApps,
  {
    server: "node:http",
    name: "its own listener",
    appOf:
      (refuse: Middleware): RequestListener =>
      (req, res) =>
        refuse(req, res, () => res.writeHead(400).end()),
  },
];

const realNow = performance.now.bind(performance);

afterEach(() => {
  jest.restoreAllMocks();
});

function open(port: number, head: string): Socket {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => undefined);
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\n${head}`);
  return socket;
}

async function closedWithin(socket: Socket, ms: number): Promise<boolean> {
  const closed = new Promise<boolean>((resolve) => void socket.on("close", () => resolve(true)));
  return Promise.race([closed, delay(ms, false, { ref: false })]);
}

describe.each(rows)("a request refused on $server, answered by $name", ({ appOf }) => {
  test.each(guards)(
    "is cut after ten seconds when it was refused %s and never ends",
    async (_title, refuse) => {
      await withServer(appOf(refuse), async (port) => {
        const socket = open(port, "Content-Length: 1000\r\n\r\nhalf").resume();
        expect(await closedWithin(socket, 120)).toBe(false);
        // A fast clock rather than one set forward: on a busy machine the refusal may come later than this line.
        const startMs = realNow();
        jest.spyOn(performance, "now").mockImplementation(() => startMs + (realNow() - startMs) * 40);
        expect(await closedWithin(socket, 15_000)).toBe(true);
      });
    },
  );

  test.each(guards)(
    "is cut after so many bytes when it was refused %s and goes on",
    async (_title, refuse) => {
      await withServer(appOf(refuse), async (port) => {
        const socket = open(port, "Transfer-Encoding: chunked\r\n\r\n").resume();
        const chunk = Buffer.from(`10000\r\n${"x".repeat(65_536)}\r\n`);
        const pour = (): void => {
          while (!socket.destroyed && socket.write(chunk));
        };
        socket.on("drain", pour);
        pour();
        expect(await closedWithin(socket, 15_000)).toBe(true);
        expect(socket.bytesWritten).toBeGreaterThan(16 * 1024 ** 2);
      });
    },
  );
});

describe.each(expressVersionsWith(express4))(
  "a refusal that the app passes over on %s",
  (_version, factory) => {
    test.each(guards)("%s bounds no body that a later handler reads", async (_title, refuse) => {
      const app = factory();
      const goOn: ErrorRequestHandler = (_error, _req, _res, next) => next();
      app.post("/", refuse, goOn, (req: Request, res: Response) => {
        let length = 0;
        req.on("data", (chunk: Buffer) => (length += chunk.length));
        req.on("end", () => res.end(`took ${length > 17 * 1024 ** 2}`));
        req.resume();
      });
      await withServer(app, async (port) => {
        const body = Buffer.alloc(18 * 1024 ** 2, "x");
        const socket = open(port, `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n`);
        socket.write(body.subarray(1));
        await delay(400);
        socket.write(body.subarray(0, 1));
        let received = "";
        for await (const chunk of socket) received += String(chunk);
        expect(received).toContain("took true");
      });
    });
  },
);

describe.each(expressVersionsWith(express4))("a refusal hidden on %s", (_version, factory) => {
  test("is cut no sooner than an unknown route: Node's own time-out is the bound of both", async () => {
    const app = factory();
    app.set("env", "test");
    app.use("/", refuseHalfRead, guardErrors({ hide: true }));
    await withServer(app, async (port) => {
      const socket = open(port, "Content-Length: 1000\r\n\r\nhalf").resume();
      await delay(100);
      jest.spyOn(performance, "now").mockImplementation(() => realNow() + 10_000);
      expect(await closedWithin(socket, 300)).toBe(false);
      socket.destroy();
    });
  });

  test("lets a body that was half read flow away, and the next request be answered", async () => {
    const app = factory();
    app.set("env", "test");
    app.post("/", refuseHalfRead, guardErrors({ hide: true }));
    app.use((_req, res) => void res.sendStatus(404));
    await withServer(app, async (port) => {
      const body = "x".repeat(300_000);
      const socket = open(port, `Content-Length: ${body.length}\r\n\r\n${body}`);
      socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      let received = "";
      for await (const chunk of socket) received += String(chunk);
      expect(received.match(/HTTP\/1\.1 404/g)).toHaveLength(2);
    });
  });
});

test.each(guards)(
  "over HTTP/2 a stream that was refused %s is closed behind its answer",
  async (_title, refuse) => {
    const server = createHttp2Server((req, res) => {
      // The compatibility API stands in for node:http, as it does for apps that run on both.
      const asGuarded = req as unknown as GuardRequest;
      refuse(asGuarded, res as unknown as Parameters<Middleware>[1], () => {
        res.statusCode = 400;
        res.end();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    try {
      const stream = client.request({ ":method": "POST", ":path": "/" }, { endStream: false });
      stream.write("half");
      stream.resume();
      const [headers] = (await once(stream, "response")) as [{ ":status": number }];
      expect(headers[":status"]).toBe(400);
      await Promise.race([once(stream, "close"), delay(15_000, undefined, { ref: false })]);
      expect({ closed: stream.closed, code: stream.rstCode }).toEqual({ closed: true, code: 0 });
    } finally {
      client.destroy();
      server.close();
    }
  },
);
