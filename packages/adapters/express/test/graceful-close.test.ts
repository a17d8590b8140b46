import { EventEmitter, once } from "node:events";
import {
  Agent,
  createServer,
  request,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from "node:http";
import {
  connect as connectHttp2,
  constants,
  createSecureServer,
  createServer as createHttp2Server,
  type ClientHttp2Session,
} from "node:http2";
import { createServer as createTlsServer, get as getByTls } from "node:https";
import { connect, type AddressInfo, type Server as NetServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { gracefulClose, type Drainable } from "@countersign/express";
import { afterEach, describe, expect, test } from "@jest/globals";
import { testAuthority } from "@countersign/test-support/servers/certificates.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

const servers: NetServer[] = [];
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** Far beyond any test: whoever waits for it has not ended by itself. */
const longMs = 600_000;
const nothing = { connections: 0, keys: 0, claims: 0 };
const answer: RequestListener = (_req, res) => void res.end("answer");

async function listening<Some extends NetServer>(server: Some): Promise<Some & { readonly port: number }> {
  servers.push(server);
  server.on("connection", (socket) => sockets.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return Object.assign(server, { port: (server.address() as AddressInfo).port });
}

async function serve(app: RequestListener, options: { timeoutMs?: number; endpoints?: Drainable[] } = {}) {
  const server = createServer(app);
  const close = gracefulClose(server, { endpoints: [], timeoutMs: longMs, ...options });
  return { server: await listening(server), close };
}

function dial({ port }: { readonly port: number }): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  return once(socket, "connect").then(() => socket);
}

/** Sends a request and reads all answers until the server ends the connection. */
function ask(socket: Socket, path = "/"): Promise<string> {
  const received = text(socket);
  socket.write(getOf(path));
  return received;
}

const getOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: platform.example\r\n\r\n`;

async function keptAnswer(socket: Socket): Promise<string> {
  socket.write(getOf("/kept"));
  let received = "";
  while (!received.includes("answer")) received += String((await once(socket, "data"))[0]);
  return received;
}

/** A handler that answers when the test says so. */
function gated() {
  const events = new EventEmitter();
  const reached = once(events, "reached");
  const opened = once(events, "open");
  const handler: RequestListener = (_req, res) => {
    events.emit("reached");
    void opened.then(() => res.end("answer"));
  };
  return { handler, reached, open: () => void events.emit("open") };
}

/** Counts as long as the handler of a key runs. */
function endpoint(events: string[]): Drainable {
  return {
    drain: ({ timeoutMs }) => {
      events.push(`drain in ${timeoutMs > 0 && timeoutMs <= longMs ? "time" : timeoutMs}`);
      return Promise.resolve({ keys: 1, claims: 2 });
    },
  };
}

describe("gracefulClose on HTTP/1.1", () => {
  test("ends a kept connection with the answer that was under way, by Connection: close", async () => {
    const gate = gated();
    const { server, close } = await serve(gate.handler);
    const received = ask(await dial(server));
    await gate.reached;
    const closing = close();
    gate.open();
    expect(await received).toMatch(/\r\nConnection: close\r\n[^]*answer/);
    expect(await closing).toEqual(nothing);
  });

  test("takes no connection, handles what arrives on a kept one, and drains when the last has gone", async () => {
    const events: string[] = [];
    const gate = gated();
    const app: RequestListener = (req, res) => {
      events.push(req.url!);
      if (req.url === "/slow") gate.handler(req, res);
      else answer(req, res);
    };
    const { server, close } = await serve(app, { endpoints: [endpoint(events)] });
    const slow = await dial(server);
    // Its first bytes are there, so that the connection is not idle.
    const half = await dial(server);
    half.write("GET /half HTTP/1.1\r\n");
    const slowAnswer = ask(slow, "/slow");
    await gate.reached;
    const closing = close();
    await eventually(() => !server.listening);
    const halfAnswer = text(half);
    half.write("Host: platform.example\r\n\r\n");
    expect(await halfAnswer).toMatch(/^HTTP\/1.1 200 [^]*\r\nConnection: close\r\n/);
    expect(events).toEqual(["/slow", "/half"]);
    gate.open();
    expect(await slowAnswer).toMatch(/^HTTP\/1.1 200 [^]*\r\nConnection: close\r\n/);
    expect(await closing).toEqual({ connections: 0, keys: 1, claims: 2 });
    expect(events).toEqual(["/slow", "/half", "drain in time"]);
  });

  test("closes idle connections, also one that never sent anything", async () => {
    const { server, close } = await serve(answer);
    const idle = await dial(server);
    expect(await keptAnswer(idle)).toContain("Connection: keep-alive");
    const silent = await dial(server);
    const ended = Promise.all([idle, silent].map((socket) => once(socket, "close")));
    for (const socket of [idle, silent]) socket.resume();
    expect(await close()).toEqual(nothing);
    await ended;
  });

  test("ends a connection with a streamed answer, and cuts none that its client reads slowly", async () => {
    const body = Buffer.alloc(20_000_000, "x");
    const gate = gated();
    const { server, close } = await serve((req, res) => {
      if (req.url === "/large") {
        res.end(body);
        return;
      }
      res.writeHead(200, { "Content-Type": "text/event-stream", Connection: "keep-alive" }).write("first\n");
      gate.handler(req, res);
    });
    const large = await new Promise<IncomingMessage>((resolve) => {
      const agent = new Agent();
      request({ port: server.port, host: "127.0.0.1", path: "/large", agent }, resolve).end();
    });
    const received = ask(await dial(server), "/stream");
    await gate.reached;
    const closing = close();
    await eventually(() => !server.listening);
    gate.open();
    // By the answer itself: for idle connections nobody looks as long as an answer leaves.
    expect(await received).toMatch(/first[^]*answer/);
    // Longer than idle connections are left open.
    await sleep(700);
    let bytes = 0;
    for await (const chunk of large) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(body.length);
    expect(await closing).toEqual(nothing);
  });

  test("cuts in time what does not end, says so, and drains all the same", async () => {
    const events: string[] = [];
    const gate = gated();
    const { server, close } = await serve(gate.handler, { timeoutMs: 100, endpoints: [endpoint(events)] });
    const received = ask(await dial(server)).catch(({ code }: NodeJS.ErrnoException) => code);
    await gate.reached;
    expect(await close()).toEqual({ connections: 1, keys: 1, claims: 2 });
    expect(["", "ECONNRESET"]).toContain(await received);
    expect(events).toEqual(["drain in time"]);
  });

  test("gives the same promise to a second call", async () => {
    const { close } = await serve(answer);
    const first = close();
    expect(close()).toBe(first);
    await first;
  });

  test("waits for the answers of connections that were there before it", async () => {
    const gate = gated();
    const server = await listening(createServer(gate.handler));
    const received = ask(await dial(server));
    await gate.reached;
    const closing = gracefulClose(server, { endpoints: [], timeoutMs: longMs })();
    // Longer than a connection may be silent that was seen from its beginning.
    await sleep(700);
    gate.open();
    expect(await received).toContain("answer");
    expect(await closing).toEqual(nothing);
  });

  test("closes a server of node:https, and cuts what does not end there", async () => {
    const authority = testAuthority();
    const gate = gated();
    const server = createTlsServer(authority.issue(), gate.handler);
    const close = gracefulClose(server, { endpoints: [], timeoutMs: 200 });
    const { port } = await listening(server);
    const received = new Promise((resolve) => {
      getByTls({ port, host: "127.0.0.1", ca: authority.cert }, resolve).on("error", ({ message }) =>
        resolve(message),
      );
    });
    await gate.reached;
    expect(await close()).toEqual({ ...nothing, connections: 1 });
    expect(await received).toBe("socket hang up");
  });
});

describe("gracefulClose on HTTP/2", () => {
  function opened(url: string, ca?: string): { session: ClientHttp2Session; goaway: Promise<unknown[]> } {
    const session = connectHttp2(url, ca === undefined ? {} : { ca });
    const goaway = once(session, "goaway");
    return { session, goaway };
  }

  test.each(["h2c", "h2"])("says GOAWAY over %s, and ends with the streams that are open", async (kind) => {
    const authority = testAuthority();
    const gate = gated();
    const app = gate.handler as never;
    const server = kind === "h2" ? createSecureServer(authority.issue(), app) : createHttp2Server(app);
    const close = gracefulClose(server, { endpoints: [], timeoutMs: longMs });
    const { port } = await listening(server);
    const scheme = kind === "h2" ? "https" : "http";
    const { session, goaway } = opened(`${scheme}://127.0.0.1:${port}`, authority.cert);
    const idle = opened(`${scheme}://127.0.0.1:${port}`, authority.cert);
    await once(idle.session, "connect");
    const stream = session.request({ ":path": "/" });
    await gate.reached;
    const closing = close();
    expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
    expect((await idle.goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
    gate.open();
    expect(await text(stream)).toBe("answer");
    expect(await closing).toEqual(nothing);
  });

  test("cuts in time a stream that does not end", async () => {
    const gate = gated();
    const server = createHttp2Server(gate.handler as never);
    const close = gracefulClose(server, { endpoints: [], timeoutMs: 200 });
    const { port } = await listening(server);
    const { session } = opened(`http://127.0.0.1:${port}`);
    session.on("error", () => undefined);
    const stream = session.request({ ":path": "/" });
    const ended = once(
      stream.on("error", () => undefined),
      "close",
    );
    await gate.reached;
    expect(await close()).toEqual({ ...nothing, connections: 1 });
    await ended;
  });
});

describe("gracefulClose with wrong arguments", () => {
  const wrong: readonly (readonly [string, unknown, unknown, RegExp])[] = [
    ["an app in place of its server", () => undefined, { endpoints: [] }, /option server must be a server/],
    ["no options", createServer(), undefined, /options must be an object/],
    ["no endpoints", createServer(), {}, /option endpoints must be an array of what has drain\(\)/],
    [
      "what has no drain()",
      createServer(),
      { endpoints: [{}] },
      /option endpoints\[0\] must be what has drain/,
    ],
    [
      "no time",
      createServer(),
      { endpoints: [], timeoutMs: 0 },
      /option timeoutMs must be an integer from 1/,
    ],
    ["an unknown option", createServer(), { endpoints: [], timeout: 1 }, /unknown option timeout/],
  ];
  test.each(wrong)("refuses %s", (_what, server, options, message) => {
    const call = (): unknown => gracefulClose(server as Server, options as never);
    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
  });
});
