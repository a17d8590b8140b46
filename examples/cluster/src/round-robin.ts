import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { listen } from "@countersign/example-settings";

/** A proxy for practice in front of several platforms. */
export interface RoundRobin {
  readonly url: string;
  /** How many requests each platform has answered, in the order of the targets. */
  readonly answered: readonly number[];
  close(): Promise<void>;
}

/** What a {@link RoundRobin} is started with. */
export interface RoundRobinInit {
  /** The platforms, each as `http://host:port`. */
  readonly targets: readonly string[];
  /** On 127.0.0.1; 0 takes any. */
  readonly port: number;
  /** The address that X-Forwarded-For gives to every caller: on one machine, theirs is the proxy's own. */
  readonly callerAddress: string;
}

/**
 * Hands each request to the next of `targets`: method, path, header fields and body as they came, but for
 * X-Forwarded-For and X-Forwarded-Proto, which are this proxy's own word. A target that cannot be reached is passed over. Throws
 * a SettingError when it cannot listen on the port.
 */
export async function startRoundRobin({ targets, port, callerAddress }: RoundRobinInit): Promise<RoundRobin> {
  const places = targets.map((target) => new URL(target));
  const answered = targets.map(() => 0);
  let turn = 0;
  const server = createServer((req, res) => {
    const first = turn;
    turn = (turn + 1) % places.length;
    const order = places.map((_, index) => (first + index) % places.length);
    handOn({ req, res, places, order, answered, callerAddress });
  });
  const bound = await listen(server, { host: "127.0.0.1", port });
  return {
    url: `http://127.0.0.1:${bound.port}`,
    answered,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

// Longer than a platform takes for anything.
const responseTimeoutMs = 20_000;

interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly places: readonly URL[];
  /** Which places are left to be tried. */
  readonly order: readonly number[];
  readonly answered: number[];
  readonly callerAddress: string;
}

function handOn(exchange: Exchange): void {
  const { req, res, places, order, answered, callerAddress } = exchange;
  const [index, ...others] = order;
  const place = index === undefined ? undefined : places[index];
  if (index === undefined || place === undefined) return refuse(res);
  let isConnected = false;
  const outgoing = request({
    host: place.hostname,
    port: place.port,
    method: req.method,
    path: req.url,
    headers: handedOn(req, callerAddress).flat(),
    // A connection of its own: on one that is kept, nobody knows whether a request was lost before or after it was handled.
    agent: false,
  });
  outgoing.once("socket", (socket: Socket) => {
    socket.once("connect", () => {
      isConnected = true;
      req.pipe(outgoing);
    });
  });
  outgoing.once("response", (incoming) => {
    answered[index] = (answered[index] ?? 0) + 1;
    res.writeHead(incoming.statusCode ?? 502, passed(incoming.rawHeaders).flat());
    incoming.pipe(res);
    incoming.once("error", () => res.destroy());
  });
  outgoing.setTimeout(responseTimeoutMs, () => outgoing.destroy(new Error("the platform does not answer")));
  outgoing.once("error", () => {
    if (res.destroyed) return;
    // Nothing of the request has been sent. Later, the platform may have handled it, and only the caller may send it again.
    if (isConnected) refuse(res);
    else handOn({ ...exchange, order: others });
  });
  res.once("close", () => outgoing.destroy());
}

function refuse(res: ServerResponse): void {
  if (res.headersSent) res.destroy();
  else res.writeHead(502, { "Content-Length": 0, "Retry-After": 1 }).end();
}

// Those of one connection (RFC 9110 section 7.6.1), and those that the platform believes this proxy.
const notHandedOn =
  /^(?:connection|keep-alive|proxy-connection|te|trailer|upgrade|x-forwarded-.*|forwarded)$/i;

function handedOn(req: IncomingMessage, callerAddress: string): [string, string][] {
  const fields = passed(req.rawHeaders).filter(([name]) => !notHandedOn.test(name));
  // Replaced and not extended: this is the first proxy, and what a caller says about itself is worth nothing.
  return [
    ...fields,
    ["X-Forwarded-For", callerAddress],
    ["X-Forwarded-Proto", "http"],
    ["Connection", "close"],
  ];
}

function passed(rawHeaders: readonly string[]): [string, string][] {
  const fields: [string, string][] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? "";
    if (!/^(?:connection|keep-alive)$/i.test(name)) fields.push([name, rawHeaders[index + 1] ?? ""]);
  }
  return fields;
}
