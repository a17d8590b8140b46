// Webhooks of one event with basic auth and HMAC, made on node:crypto alone.
import { createHmac, randomUUID } from "node:crypto";

export const path = "/hooks/2b1f6f0e9d584b6f8a3c";

export function createWebhookSender() {
  const secrets = { username: "service", password: "bench-password", secret: "bench-secret" };
  const authorization = `Basic ${Buffer.from(`${secrets.username}:${secrets.password}`).toString("base64")}`;
  let count = 0;
  const next = () => {
    const fraction = String(++count).padStart(9, "0");
    const body = JSON.stringify({
      webhook_id: randomUUID(),
      timestamp: `2024-01-02T03:04:05.${fraction}Z`,
      events: [
        {
          event_id: randomUUID(),
          timestamp: `2024-01-02T03:04:05.${fraction}Z`,
          type: "buyer.status_changed",
          data: { buyer_id: `buyer-${count % 1000}`, old_status: "PENDING", new_status: "ACTIVE" },
        },
      ],
    });
    const headers = {
      authorization,
      "content-type": "application/json",
      "x-payload-signature": createHmac("sha256", secrets.secret).update(body).digest("base64"),
    };
    return { body, headers };
  };
  return { secrets, next };
}
