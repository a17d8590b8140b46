import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import { Server, type Socket } from "node:net";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import {
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";

const factoryName = "gracefulClose";

/** An owner of idempotency keys: an endpoint, route, plugin, guard or event handler. */
export interface Drainable {
  /** Refuses new claims; resolves to what is left, all 0 when everything was settled. */
  drain(options: { readonly timeoutMs: number }): Promise<{ readonly keys: number; readonly claims: number }>;
}

export interface GracefulCloseOptions {
  /** All owners of keys on this server; `[]` for none. */
  readonly endpoints: readonly Drainable[];
  /** Milliseconds for closing: longer than your slowest handler, shorter than your platform's kill (30 s on Kubernetes). Default 10,000. */
  readonly timeoutMs?: number | undefined;
}

/** What a close cut short or left behind; all 0 when everything left in time. */
export interface CloseReport {
  /** Open connections that were cut when their time was up. */
  readonly connections: number;
  /** Owned keys: their handlers still run, or the store did not take their record. */
  readonly keys: number;
  /** Claims whose answer was lost and that could not be given back. */
  readonly claims: number;
}

export const table = {
  endpoints: option.own(readEndpoints),
  timeoutMs: option.integer({ min: 1, max: 3_600_000, fallback: 10_000 }),
} satisfies OptionTable<GracefulCloseOptions, unknown>;

/**
 * Returns a function that closes the server without refusing sent requests. Call it where the server is made: it has to see each
 * connection begin. Closing takes no new connection, answers on kept ones with `Connection: close` (RFC 9112 section 9.6; GOAWAY on
 * HTTP/2), and drains the endpoints after the last answer; a fifth of `timeoutMs` before its end it cuts what is open. Calls share one
 * promise. Throws an OptionError on a wrong server or option.
 */
export function gracefulClose(server: Server, options: GracefulCloseOptions): () => Promise<CloseReport> {
  if (!((server as unknown) instanceof Server)) {
    throw optionError(factoryName, "server", "a server of node:http, node:https or node:http2", server);
  }
  const { endpoints, timeoutMs } = readOptions(factoryName, table, options);
  const traffic = new Traffic(server);
  const close = async (): Promise<CloseReport> => {
    const endsAtMs = performance.now() + timeoutMs;
    // Keys are settled after the connections: their handlers may learn only now that the client has gone.
    const connections = await traffic.end(endsAtMs - timeoutMs / 5);
    const leftMs = Math.max(1, Math.ceil(endsAtMs - performance.now()));
    const left = await Promise.all(endpoints.map(async (endpoint) => endpoint.drain({ timeoutMs: leftMs })));
    return {
      connections,
      keys: left.reduce((total, { keys }) => total + keys, 0),
      claims: left.reduce((total, { claims }) => total + claims, 0),
    };
  };
  let closing: Promise<CloseReport> | undefined;
  return () => (closing ??= close());
}

function readEndpoints(given: unknown, owner: OptionOwner, name: string): readonly Drainable[] {
  if (!Array.isArray(given)) throw optionError(owner, name, "an array of what has drain()", given);
  const endpoints: readonly unknown[] = given;
  return endpoints.map((endpoint, index) => {
    if (isDrainable(endpoint)) return endpoint;
    const expected = "what has drain(): payoutEndpoint(), createWebhookHandler(), a route, plugin or guard";
    throw optionError(owner, `${name}[${index}]`, expected, endpoint);
  });
}

function isDrainable(value: unknown): value is Drainable {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return "drain" in value && typeof value.drain === "function";
}

const lookMs = 50;
// A proxy, or a client just connected, may be sending on its connection: closing under a request resets it. Under load each is used
// by then, and ends with its answer. Also the longest wait for a quiet turn.
const onTheWayMs = 500;
const quietTurnMs = 1;

/** What servers of node:http have and those of node:http2 lack. */
interface ClosesConnections {
  closeIdleConnections?(): void;
  closeAllConnections?(): void;
}

/** A server's connections with the answer under way on each. Node does not list them. */
class Traffic {
  readonly #server: Server & ClosesConnections;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  /** HTTP/1: a connection's last answer under way, undefined between two. Pipelined ones leave before it. */
  readonly #answers = new Map<Socket, ServerResponse | undefined>();
  #isEnding = false;

  constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket: Socket) => keep(this.#sockets, socket));
    server.on("session", (session: ServerHttp2Session) => keep(this.#sessions, session));
    // Before the app's own listener, which may answer at once.
    server.prependListener("request", (req: IncomingMessage, res: ServerResponse) => {
      if (req.httpVersionMajor < 2) this.#begin(req.socket, res);
    });
  }

  /** Resolves when all connections have ended, to the number cut at `untilMs`. */
  async end(untilMs: number): Promise<number> {
    this.#isEnding = true;
    for (const [socket, res] of this.#answers) if (res !== undefined) this.#makeLast(socket, res);
    // Announced first, with room for streams under way (RFC 9113 section 6.8).
    for (const session of this.#sessions) if (!session.destroyed) session.goaway(0, 2 ** 31 - 1);
    const idleUntilMs = performance.now() + onTheWayMs;
    await quietTurn(idleUntilMs);
    // http.Server's own method cuts an answer that was ended and has not left (Node 20 to 26).
    Server.prototype.close.call(this.#server);
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- looks again and again, for a few seconds at the end of a process
      const open = await countConnections(this.#server);
      if (open === 0) return 0;
      const nowMs = performance.now();
      if (nowMs >= untilMs) return this.#cut(open);
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (nowMs >= idleUntilMs) await this.#closeIdle(nowMs + lookMs);
      // oxlint-disable-next-line no-await-in-loop -- as above
      await sleep(lookMs);
      for (const session of this.#sessions) if (!session.closed) session.close();
    }
  }

  #begin(socket: Socket, res: ServerResponse): void {
    // A pipelined answer that never had its turn does not emit its close.
    if (!this.#answers.has(socket)) socket.once("close", () => this.#answers.delete(socket));
    this.#answers.set(socket, res);
    res.once("close", () => {
      if (this.#answers.get(socket) === res) this.#answers.set(socket, undefined);
    });
    if (this.#isEnding) this.#makeLast(socket, res);
  }

  #makeLast(socket: Socket, res: ServerResponse): void {
    // Makes Node write `Connection: close`. A header field would be kept with an answer that is given again.
    res.shouldKeepAlive = false;
    // For a head that has left, or the app's own `keep-alive`.
    res.once("finish", () => {
      if (this.#answers.get(socket) === res) socket.destroySoon();
    });
  }

  async #closeIdle(untilMs: number): Promise<void> {
    await quietTurn(untilMs);
    const open = await countConnections(this.#server);
    const answers = [...this.#answers.values()].filter((res) => res !== undefined);
    // Node takes ended answers for sent ones, and would cut them.
    if (answers.some((res) => res.writableEnded && !res.writableFinished)) return;
    this.#server.closeIdleConnections?.();
    // Without an answer under way: it never sent the head of a request, or is upgraded.
    const areAllKnown = open === this.#sockets.size;
    if (answers.length + this.#sessions.size === 0 && areAllKnown) this.#cut(open);
  }

  #cut(open: number): number {
    for (const socket of this.#sockets) socket.destroy();
    // Those from before the first call, which only Node knows.
    this.#server.closeAllConnections?.();
    return open;
  }
}

function keep<Ending extends Socket | ServerHttp2Session>(all: Set<Ending>, one: Ending): void {
  all.add(one);
  one.once("close", () => all.delete(one));
}

/** Waits for a turn of the event loop in which little arrives, so that a close resets little that is unread or not yet accepted. */
async function quietTurn(untilMs: number): Promise<void> {
  for (let startMs = 0; performance.now() - startMs > quietTurnMs && startMs < untilMs;) {
    startMs = performance.now();
    // oxlint-disable-next-line no-await-in-loop -- turn after turn
    await turn();
  }
}

function countConnections(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}
