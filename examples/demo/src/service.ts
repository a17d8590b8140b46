import { randomBytes } from "node:crypto";
import { startSandbox, type Delivery, type Sandbox } from "@countersign/devtools/sandbox";
import { createServiceClient, type WebhookEndpoint } from "countersign/client";
import { z } from "zod";

/** The lending service of the demo. */
export interface DemoService {
  readonly sandbox: Sandbox;
  /** Creates an endpoint through the service's API. */
  register(endpoint: WebhookEndpoint): Promise<Registration>;
  /** The delivery of an event to an endpoint, as soon as it has succeeded. */
  untilDelivered(endpointId: string, eventId: string): Promise<Delivery | undefined>;
  /** The same, as soon as there are `count` attempts. */
  untilAttempted(endpointId: string, eventId: string, count: number): Promise<Delivery | undefined>;
  close(): Promise<void>;
}

/** What the service answered. */
interface Registration {
  readonly status: number;
  readonly endpointId: string;
}

const registeredEndpoint = z.object({ id: z.string() });

// The first retry comes after about 50 ms instead of a second; events share a webhook for 20 ms.
const speed = 20;
const batchMs = 400;
const pollMs = 5;
const patienceMs = 10_000;

/** Starts a lending service in this process, on a free port, with a database that ends with it. */
export async function startDemoService(): Promise<DemoService> {
  const apiKey = randomBytes(16).toString("hex");
  const sandbox = await startSandbox({ apiKey, allowHttp: true, speed, delivery: { batchMs } });
  const client = createServiceClient({ baseUrl: sandbox.url, apiKey, dangerouslyAllowHttp: true });

  async function until(
    endpointId: string,
    eventId: string,
    isEnough: (delivery: Delivery) => boolean,
  ): Promise<Delivery | undefined> {
    const end = Date.now() + patienceMs;
    for (;;) {
      const delivery = sandbox.deliveries.list({ eventId }).find((one) => one.endpointId === endpointId);
      if (delivery !== undefined && isEnough(delivery)) return delivery;
      // The table shows how far it came.
      if (Date.now() > end) return delivery;
      // oxlint-disable-next-line no-await-in-loop -- waits for what others do
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  return {
    sandbox,
    async register(endpoint) {
      const { status, body } = await client.createWebhookEndpoint(endpoint);
      return { status, endpointId: registeredEndpoint.parse(body).id };
    },
    untilDelivered: (endpointId, eventId) => until(endpointId, eventId, ({ state }) => state === "delivered"),
    untilAttempted: (endpointId, eventId, count) =>
      until(endpointId, eventId, ({ attempts }) => attempts.length >= count),
    close: () => sandbox.close(),
  };
}
