import type { SandboxOptions } from "../../src/sandbox/service/options.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/service/sandbox.ts";
import { startReceiver, type Receiver } from "./delivery-bench.ts";

/** TEST CREDENTIALS. */
export const apiKey = "test-api-key";
export const registration = {
  auth_username: "service",
  auth_password: "test-password",
  signature_secret: "test-secret",
};

export interface ReceivedEvent {
  readonly event_id: string;
  readonly timestamp: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

/** A sandbox, and a receiver that takes every webhook. */
export class ServiceBench {
  readonly webhooks: (readonly ReceivedEvent[])[] = [];
  #receiver: Receiver | undefined;
  #sandbox: Sandbox | undefined;

  get sandbox(): Sandbox {
    if (this.#sandbox === undefined) throw new Error("the sandbox was not started");
    return this.#sandbox;
  }

  get receiverUrl(): string {
    return this.#receiver?.url ?? "";
  }

  /** All events received, in the order of their timestamps. */
  get events(): readonly ReceivedEvent[] {
    const events = this.webhooks.flat();
    // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
    return events.sort((one, other) => (one.timestamp < other.timestamp ? -1 : 1));
  }

  async open(options: Partial<SandboxOptions> = {}): Promise<void> {
    this.#receiver = await startReceiver(({ body }) => {
      this.webhooks.push((JSON.parse(body.toString()) as { events: ReceivedEvent[] }).events);
      return 200;
    });
    this.#sandbox = await startSandbox({ apiKey, allowHttp: true, ...options });
  }

  /** Ends the sandbox and starts one with these options in its place. */
  async restart(options: Partial<SandboxOptions>): Promise<void> {
    await this.sandbox.close();
    this.#sandbox = await startSandbox({ apiKey, allowHttp: true, ...options });
  }

  async close(): Promise<void> {
    await this.sandbox.close();
    await this.#receiver?.close();
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
}
