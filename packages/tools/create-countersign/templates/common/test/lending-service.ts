import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  sendPayout,
  sendRequest,
} from "@countersign/devtools/sandbox";

/**
 * From where it calls; an address that nobody has (RFC 5737). Requests say so as the proxy in front of the platform does, which also ends TLS.
 */
export const forwardedFor = "192.0.2.10";

/** Signs a payout instruction, sends it, and gives the status of the answer. */
export async function pay(url: string, body: unknown, keyid: string, privateKey: string): Promise<number> {
  const to = `${url}/api/v1/transaction`;
  const request = buildPayoutRequest({ url: to, body, keyid, privateKey, forwardedFor });
  return (await sendPayout(request)).status;
}

/** The bytes of a webhook with one event. Delivered again, they are the same. */
export function webhookOf(eventId: string): Buffer {
  const data = { buyer_id: "buyer-1", old_status: "PENDING", new_status: "ACTIVE" };
  const events = [{ event_id: eventId, type: "buyer.status_changed", data }];
  return createEnvelope({ events, now: BigInt(Date.now()) * 1_000_000n });
}

/** Delivers a webhook, and gives the status of the answer. */
export async function notify(
  url: string,
  body: Buffer,
  credentials: { username: string; password: string; secret: string },
): Promise<number> {
  const request = buildWebhookRequest({ ...credentials, url, body, allowHttp: true, forwardedFor });
  return (await sendRequest(request)).status;
}
