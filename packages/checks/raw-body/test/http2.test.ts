import { once } from "node:events";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  connect,
  constants,
  createServer,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { guardChannelName, type GuardEvent } from "@countersign/core";
import { guard, type GuardRequest, type Middleware } from "@countersign/express";
import { capturedRawBody, captureRawBody, rawBody } from "@countersign/raw-body";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

/** What the chain did with a request: an error handed on, or the bytes that the handler saw. */
type Outcome = { readonly refused: unknown } | { readonly handled: string | undefined };

const events: GuardEvent[] = [];
const onEvent = (event: unknown): void => void events.push(event as GuardEvent);

beforeEach(() => {
  events.length = 0;
  subscribe(guardChannelName, onEvent);
});

afterEach(() => {
  unsubscribe(guardChannelName, onEvent);
});

interface Site {
  readonly session: ClientHttp2Session;
  readonly outcomes: Outcome[];
  /** What the server has seen of its requests, by event name. */
  readonly seen: string[];
}

/** An h2c server on loopback whose requests run through `chain` by the compatibility API. */
async function withSite(chain: readonly Middleware[], work: (site: Site) => Promise<void>): Promise<void> {
  const outcomes: Outcome[] = [];
  const seen: string[] = [];
  const server = createServer((http2Req: Http2ServerRequest, http2Res: Http2ServerResponse) => {
    // The compatibility API stands in for node:http, as it does for apps that run on both.
    const req = http2Req as unknown as GuardRequest;
    const res = http2Res as unknown as Parameters<Middleware>[1];
    seen.push("open");
    http2Req.on("close", () => seen.push("close"));
    const pending = [...chain];
    const advance = (error?: unknown): void => {
      const next = error === undefined ? pending.shift() : undefined;
      if (next !== undefined) return next(req, res, advance);
      outcomes.push(error === undefined ? { handled: capturedRawBody(req)?.toString() } : { refused: error });
      res.statusCode = error === undefined ? 200 : 400;
      res.end();
    };
    advance();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  session.on("error", () => undefined);
  try {
    await work({ session, outcomes, seen });
  } finally {
    session.destroy();
    server.close();
  }
}

function begin(session: ClientHttp2Session, headers: Record<string, string> = {}): ClientHttp2Stream {
  const stream = session.request({ ":method": "POST", ":path": "/", ...headers }, { endStream: false });
  stream.on("error", () => undefined);
  return stream;
}

/** A request that is cut before the server has heard of it never comes. */
async function halfArrived({ seen }: Site): Promise<void> {
  await eventually(() => seen.includes("open"));
  await delay(30);
}

async function closed({ seen }: Site): Promise<void> {
  await eventually(() => seen.includes("close"));
  // What a reader does with the end comes a few turns later.
  await delay(30);
}

const later = (ms: number): Middleware => guard("later", () => delay(ms));

// A parser of the app's own: it reads to the end and hands the bytes over, as express.json({ verify }) does.
const capture: Middleware = (req, res, next) => {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("end", () => {
    captureRawBody(req, res, Buffer.concat(chunks));
    next();
  });
};
// As express.raw() does.
const keep: Middleware = (req, _res, next) => {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("end", () => {
    req.body = Buffer.concat(chunks);
    next();
  });
};

const chains: [title: string, chain: readonly Middleware[]][] = [
  ["rawBody()", [rawBody()]],
  ["rawBody() behind a guard that waits", [later(80), rawBody()]],
  ["captureRawBody", [capture, rawBody()]],
  ["a parser that keeps the bytes in req.body", [keep, rawBody()]],
];

describe.each(chains)("over HTTP/2, %s", (_title, chain) => {
  test.each<[string, Record<string, string>]>([
    ["without Content-Length", {}],
    ["with Content-Length", { "content-length": "4" }],
  ])("takes a body that ends %s", async (_name, headers) => {
    await withSite(chain, async ({ session, outcomes }) => {
      const stream = begin(session, headers);
      stream.end("full");
      const [answer] = (await once(stream, "response")) as [{ ":status": number }];
      expect(answer[":status"]).toBe(200);
      expect(outcomes).toEqual([{ handled: "full" }]);
    });
  });

  test.each<[string, (stream: ClientHttp2Stream, session: ClientHttp2Session) => void]>([
    ["RST_STREAM", (stream) => stream.destroy()],
    // Node's client sends END_STREAM in front of it.
    ["RST_STREAM with CANCEL", (stream) => stream.close(constants.NGHTTP2_CANCEL)],
    ["RST_STREAM with NO_ERROR", (stream) => stream.close(constants.NGHTTP2_NO_ERROR)],
    ["the end of the connection", (_stream, session) => session.destroy()],
  ])("takes a body that was cut by %s for an aborted request", async (_name, cut) => {
    await withSite(chain, async (site) => {
      const stream = begin(site.session);
      stream.write("half");
      await halfArrived(site);
      cut(stream, site.session);
      await closed(site);
      await delay(80);
      expect(site.outcomes).toEqual([]);
      expect(events.filter(({ outcome }) => outcome === "error")).toEqual([]);
      for (const { outcome, code } of events) if (outcome === "reject") expect(code).toBe("request-aborted");
    });
  });

  test("takes a body shorter than its Content-Length, cut, for an aborted request", async () => {
    await withSite(chain, async (site) => {
      const stream = begin(site.session, { "content-length": "100" });
      stream.write("half");
      await halfArrived(site);
      stream.close(constants.NGHTTP2_CANCEL);
      await closed(site);
      await delay(80);
      expect(site.outcomes).toEqual([]);
    });
  });
});
