// A sender of its own: node:crypto and node:http(s), no code of the project.
import { createHmac } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";

// TEST CREDENTIALS.
export const webhookEnvironment = {
  WEBHOOK_PATH: "/hooks/4f6c9d0a",
  WEBHOOK_USERNAME: "service",
  WEBHOOK_PASSWORD: "test-password",
  WEBHOOK_SECRETS: "test-secret",
};

export interface SentWebhook {
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
  readonly username?: string;
  readonly password?: string;
  readonly secret?: string;
  readonly signature?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly ca?: string;
}

export interface ReceivedAnswer {
  readonly status: number;
  readonly fields: readonly string[];
  readonly body: string;
}

/** Sends one webhook as the service would, but for what `webhook` changes. */
export function sendTestWebhook(url: string, webhook: SentWebhook = {}): Promise<ReceivedAnswer> {
  const { method = "POST", path = webhookEnvironment.WEBHOOK_PATH, body = envelope(), ca } = webhook;
  const { username = "service", password = "test-password", secret = "test-secret" } = webhook;
  const headers = {
    "Content-Type": "application/json",
    Authorization: "Basic " + Buffer.from(username + ":" + password).toString("base64"),
    "X-Payload-Signature": webhook.signature ?? createHmac("sha256", secret).update(body).digest("base64"),
    "Content-Length": String(Buffer.byteLength(body)),
    ...webhook.headers,
  };
  const send = url.startsWith("https:") ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const outgoing = send(url + path, { method, headers, agent: false, ca }, (incoming) => {
      const raw = incoming.rawHeaders;
      const fields = raw.flatMap((name, index) =>
        index % 2 === 0 && name !== "Date" ? [`${name}: ${raw[index + 1]}`] : [],
      );
      resolve(text(incoming).then((read) => ({ status: incoming.statusCode ?? 0, fields, body: read })));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

export interface TestEvent {
  readonly event_id?: string;
  readonly type?: string;
  readonly timestamp?: string;
  readonly data?: unknown;
}

export function envelope(...events: readonly TestEvent[]): string {
  const defaults = {
    event_id: "ev-1",
    timestamp: "2024-01-02T03:04:05.123456789Z",
    type: "buyer.status_changed",
    data: { buyer_id: "b-1", old_status: "PENDING", new_status: "ACTIVE" },
  };
  return JSON.stringify({
    webhook_id: "wh-1",
    timestamp: "2024-01-02T03:04:06Z",
    events: (events.length === 0 ? [{}] : events).map((event) => Object.assign({}, defaults, event)),
  });
}
