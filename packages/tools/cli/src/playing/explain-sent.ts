import { createPublicKey, type KeyObject } from "node:crypto";
import type { buildPayoutRequest, buildWebhookRequest } from "@countersign/devtools/sandbox";
import {
  explainBasicAuth,
  explainHmac,
  explainSignature,
  type ExplainedRequest,
  type Explanation,
} from "../explain/index.ts";

/** Explains a payout that was sent spoilt, as `countersign explain` does with the public key. */
export function explainPayout(
  request: ReturnType<typeof buildPayoutRequest>,
  { keyid, privateKey }: { readonly keyid: string; readonly privateKey: KeyObject },
): Promise<Explanation> {
  const publicKey = createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString();
  return explainSignature(receivedOf(request), { keys: { [keyid]: publicKey } });
}

/** Explains a webhook that was sent spoilt: its HMAC, or its credentials if that fits. */
export async function explainWebhook(
  request: ReturnType<typeof buildWebhookRequest>,
  { username, password, secret }: Readonly<Record<"username" | "password" | "secret", string>>,
): Promise<Explanation> {
  const received = receivedOf(request);
  const ofHmac = await explainHmac(received, request.bodyBytes, { secrets: [secret] });
  return ofHmac.what === "verifies" ? explainBasicAuth(received, [{ username, password }]) : ofHmac;
}

function receivedOf({ method, target, url, headers, bodyBytes }: Parameters<typeof explainWebhook>[0]) {
  const scheme = /^https:/i.test(url) ? "https" : "http";
  const rawHeaders = Object.entries(headers).flat();
  return { method, target, rawHeaders, scheme, body: bodyBytes } satisfies ExplainedRequest;
}
