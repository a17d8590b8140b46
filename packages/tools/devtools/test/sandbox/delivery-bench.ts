import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { close } from "@countersign/test-support/servers/http-client.ts";
import { buffer } from "node:stream/consumers";
import Database from "libsql";
import { DeliveryService, type DeliveryServiceInit } from "../../src/sandbox/delivery/delivery-service.ts";
import { DocumentStore } from "../../src/sandbox/documents.ts";
import type { ServiceEvent } from "../../src/sandbox/delivery/envelope.ts";
import type { EndpointRegistration } from "../../src/sandbox/delivery/webhook-request.ts";

/** One webhook as it arrived, read with node:crypto alone. */
export interface ReceivedWebhook {
  readonly method: string;
  readonly target: string;
  readonly contentType: string;
  readonly headers: IncomingMessage["headers"];
  readonly credentials: string;
  readonly body: Buffer;
  readonly eventIds: readonly string[];
  readonly signedBy: (secret: string) => boolean;
}

/** Answers one webhook: with a status, or by itself. */
export type Respond = (
  webhook: ReceivedWebhook,
  index: number,
  res: ServerResponse,
) => number | undefined | Promise<number | undefined>;

export interface Receiver {
  readonly url: string;
  readonly received: ReceivedWebhook[];
  /** The highest number of requests that waited for their answer at the same time. */
  readonly mostAtOnce: () => number;
  readonly close: () => Promise<void>;
}

/** A receiver on loopback; by default it answers 200 to everything. */
export async function startReceiver(
  respond: Respond = () => 200,
  tls?: { readonly key: string; readonly cert: string },
): Promise<Receiver> {
  const received: ReceivedWebhook[] = [];
  let [open, mostOpen] = [0, 0];
  const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    open += 1;
    mostOpen = Math.max(mostOpen, open);
    res.on("close", () => (open -= 1));
    const webhook = read(req, await buffer(req));
    received.push(webhook);
    const status = await respond(webhook, received.length - 1, res);
    if (status !== undefined) res.writeHead(status).end();
  };
  const listener = (req: IncomingMessage, res: ServerResponse): void => void handle(req, res).catch(() => {});
  const server = tls === undefined ? createServer(listener) : createHttpsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}/hooks/a%2Fb?x=1`,
    received,
    mostAtOnce: () => mostOpen,
    close: () => close(server),
  };
}

function read(req: IncomingMessage, body: Buffer): ReceivedWebhook {
  const [, credentials = ""] = /^Basic (.*)$/.exec(String(req.headers.authorization)) ?? [];
  return {
    method: String(req.method),
    target: String(req.url),
    contentType: String(req.headers["content-type"]),
    headers: req.headers,
    credentials: Buffer.from(credentials, "base64").toString("utf8"),
    body,
    eventIds: eventIdsOf(body),
    signedBy: (secret) =>
      createHmac("sha256", secret).update(body).digest("base64") === req.headers["x-payload-signature"],
  };
}

function eventIdsOf(body: Buffer): string[] {
  try {
    const { events } = JSON.parse(body.toString("utf8")) as { events: { event_id: string }[] };
    return events.map(({ event_id }) => event_id);
  } catch {
    return [];
  }
}

/** A time that stands still until the next timer is let go. One timer exists at most, as the service promises. */
export class FakeTime {
  nowMs = 1_700_000_000_000;
  #timer: { readonly dueMs: number; readonly callback: () => void } | undefined;
  #onArmed: () => void = () => {};

  get init(): Pick<DeliveryServiceInit, "clock" | "startTimer"> {
    return { clock: () => this.nowMs, startTimer: this.#startTimer };
  }

  readonly #startTimer = (callback: () => void, delayMs: number): (() => void) => {
    if (this.#timer !== undefined) throw new Error("two timers at once");
    const timer = { dueMs: this.nowMs + delayMs, callback };
    this.#timer = timer;
    this.#onArmed();
    return () => {
      if (this.#timer === timer) this.#timer = undefined;
    };
  };

  get delayMs(): number | undefined {
    return this.#timer === undefined ? undefined : this.#timer.dueMs - this.nowMs;
  }

  armed(): Promise<void> {
    if (this.#timer !== undefined) return Promise.resolve();
    return new Promise((resolve) => (this.#onArmed = resolve));
  }

  letGo(): void {
    const timer = this.#timer;
    if (timer === undefined) return;
    this.#timer = undefined;
    this.nowMs = timer.dueMs;
    timer.callback();
  }

  /** Lets one timer go after the other until nothing is left to send. */
  async runUntilIdle(service: DeliveryService): Promise<void> {
    const idle = service.idle().then(() => "idle");
    // oxlint-disable-next-line no-await-in-loop -- time passes step by step
    while ((await Promise.race([this.armed(), idle])) !== "idle") this.letGo();
  }
}

export const credentials = { username: "service", password: "test-password", secret: "test-secret" } as const;

export function registration(url: string, changes: Partial<EndpointRegistration> = {}): EndpointRegistration {
  return { url, ...credentials, allowHttp: true, ...changes };
}

/** What the tests of deliveries open; each ends with its test. */
export const bench = {
  async receiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
    const receiver = await startReceiver(...args);
    afterTest(() => receiver.close());
    return receiver;
  },

  service(init: Partial<DeliveryServiceInit> = {}): DeliveryService {
    const store = init.store ?? new DocumentStore(bench.database());
    const service = new DeliveryService({ ...init, store });
    afterTest(() => service.stop());
    return service;
  },

  started(receiver: Receiver, init?: Partial<DeliveryServiceInit>): DeliveryService {
    const service = bench.service(init);
    service.addEndpoint(registration(receiver.url));
    service.start();
    return service;
  },

  database(path = ":memory:"): Database.Database {
    const database = new Database(path);
    afterTest(() => database.close());
    return database;
  },
};

export function event(id: string, type = "buyer.status_changed"): ServiceEvent & { event_id: string } {
  return { event_id: id, type, data: { buyer_id: id } };
}

/** The events of each webhook, in the order of their arrival. */
export function idsOf(received: readonly ReceivedWebhook[]): string[] {
  return received.map(({ eventIds }) => eventIds.join("+"));
}

/** The events of each delivery as it is listed. */
export function idsIn(service: DeliveryService): string[] {
  return service.list().map(({ eventIds }) => eventIds.join("+"));
}
