import { isIPv4 } from "node:net";
import { secretFault, userNameFault } from "@countersign/core/internal";
import { signPayload } from "@countersign/webhook-hmac";
import { forwardedFields } from "../forwarded-fields.ts";
import { parsePayoutUrl } from "../payout-url.ts";
import type { OutgoingRequest } from "../send-request.ts";
import { sentBodyOf, tamperSignature } from "../tamper.ts";

export const tamperedWebhookParts = ["body", "signature", "password", "body-re-serialised"] as const;

/** What each of them is in plain words. */
export const tamperedWebhookTexts: Readonly<Record<TamperedWebhookPart, string>> = {
  body: "Body changed after signing",
  signature: "One bit of the signature turned",
  password: "Wrong password",
  "body-re-serialised": "Body parsed and serialised again after signing",
};

/** What is spoilt after signing; `password` sends a wrong one. */
export type TamperedWebhookPart = (typeof tamperedWebhookParts)[number];

/** Where webhooks go, and the credentials for this endpoint alone. */
export interface EndpointRegistration {
  /** https, or http by `allowHttp`; its path and query are sent exactly as given. */
  readonly url: string;
  /** Without a colon, which ends the username in RFC 7617. */
  readonly username: string;
  readonly password: string;
  /** Key of the HMAC in X-Payload-Signature, as UTF-8. */
  readonly secret: string;
  /** Accept an http URL: `loopback` one of this machine, true any. Default false. */
  readonly allowHttp?: boolean | "loopback" | undefined;
}

export interface WebhookRequestOptions extends EndpointRegistration {
  /** Sent byte for byte. */
  readonly body: Buffer;
  /**
   * Sends the webhook as a proxy that ends TLS hands it on: with this IP address in X-Forwarded-For, and X-Forwarded-Proto: https. Default
   * none.
   */
  readonly forwardedFor?: string | undefined;
  /** Default none. */
  readonly tamper?: TamperedWebhookPart | undefined;
}

/** Throws a TypeError, which shows no credential, on what cannot be sent. */
export function buildWebhookRequest(options: WebhookRequestOptions): OutgoingRequest {
  const { url, username, password, secret, body, forwardedFor, tamper } = options;
  const target = endpointTarget(options);
  const signature = signPayload(body, secret);
  return {
    method: "POST",
    url,
    target,
    headers: {
      "Content-Type": "application/json",
      Authorization: basicCredentials(username, tamper === "password" ? `${password}?` : password),
      "X-Payload-Signature":
        tamper === "signature" ? tamperSignature(`:${signature}:`).slice(1, -1) : signature,
      ...forwardedFields(forwardedFor),
    },
    bodyBytes: sentBodyOf(body, tamper),
  };
}

/** The path and query to call. Throws a TypeError, which shows no credential, when webhooks cannot go there. */
export function endpointTarget({ username, password, secret, ...to }: EndpointRegistration): string {
  for (const [name, value] of Object.entries({ username, password, secret })) {
    const faultOf = name === "username" ? userNameFault : secretFault;
    const fault = typeof value === "string" ? faultOf(value) : "is no string";
    if (fault !== undefined) throw new TypeError(`${name} ${fault}`);
  }
  return targetOf(to.url, to.allowHttp);
}

/** The path and query of a URL. Throws a TypeError for http without `allowHttp`. */
export function targetOf(url: string, allowHttp: boolean | "loopback" = false): string {
  const { scheme, hostname, target } = parsePayoutUrl(url);
  if (scheme !== "https" && !(allowHttp === "loopback" ? isLoopback(hostname) : allowHttp))
    throw new TypeError("the URL must be https, unless allowHttp (--allow-http) is set");
  return target;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || (isIPv4(hostname) && hostname.startsWith("127."));
}

// RFC 7617 section 2, as UTF-8.
function basicCredentials(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}
