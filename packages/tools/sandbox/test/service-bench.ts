import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { SandboxOptions } from "../src/service/options.ts";
import { startSandbox, type Sandbox } from "../src/service/sandbox.ts";

/** TEST CREDENTIALS. */
export const apiKey = "test-api-key";
export const registration = {
  auth_username: "service",
  auth_password: "test-password",
  signature_secret: "test-secret",
};

/** One event as a receiver got it. */
export interface ReceivedEvent {
  readonly event_id: string;
  readonly timestamp: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** One answer of the service. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

/** A sandbox, and a receiver that takes every webhook. */
export class ServiceBench {
  readonly webhooks: (readonly ReceivedEvent[])[] = [];
  #receiver: Server | undefined;
  #sandbox: Sandbox | undefined;

  get sandbox(): Sandbox {
    if (this.#sandbox === undefined) throw new Error("the sandbox was not started");
    return this.#sandbox;
  }

  get receiverUrl(): string {
    const address = this.#receiver?.address() as AddressInfo;
    return `http://127.0.0.1:${address.port}/hooks`;
  }

  /** All events received, in the order of their timestamps. */
  get events(): readonly ReceivedEvent[] {
    const events = this.webhooks.flat();
    // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
    return events.sort((one, other) => (one.timestamp < other.timestamp ? -1 : 1));
  }

  async open(options: Partial<SandboxOptions> = {}): Promise<void> {
    await this.#startReceiver();
    this.#sandbox = await startSandbox({ apiKey, allowHttp: true, ...options });
  }

  /** Ends the sandbox and starts one with these options in its place. */
  async restart(options: Partial<SandboxOptions>): Promise<void> {
    await this.sandbox.close();
    this.#sandbox = await startSandbox({ apiKey, allowHttp: true, ...options });
  }

  async close(): Promise<void> {
    await this.sandbox.close();
    await new Promise((resolve) => this.#receiver?.close(resolve));
  }

  async register(url: string = this.receiverUrl): Promise<Answer> {
    return this.post("/api/v2/b2b-payments/webhook-endpoints", { url, ...registration });
  }

  get(path: string): Promise<Answer> {
    return this.request(path, {});
  }

  post(path: string, body?: unknown): Promise<Answer> {
    return this.request(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Sends any request, with the API key unless `init` has another. */
  async request(path: string, init: RequestInit): Promise<Answer> {
    const response = await fetch(this.sandbox.url + path, {
      ...init,
      headers: { "X-API-KEY": apiKey, ...(init.headers as Record<string, string>) },
    });
    const received = await response.text();
    const body = (received === "" ? {} : JSON.parse(received)) as Record<string, unknown>;
    return { status: response.status, headers: response.headers, body };
  }

  async #startReceiver(): Promise<void> {
    const receiver = createServer((req, res) => void this.#receive(req, res));
    this.#receiver = receiver;
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  }

  async #receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { events } = JSON.parse(await text(req)) as { events: ReceivedEvent[] };
    this.webhooks.push(events);
    res.end();
  }
}
