import { assertKnownOptions } from "@countersign/guard";
import { assertServiceUrl } from "./service-url.ts";

/** A webhook endpoint as it is registered: where the service calls, and how it authenticates itself there. */
export interface WebhookEndpoint {
  /** https, without credentials and fragment; sent exactly as given. */
  readonly url: string;
  /** Username of HTTP basic authentication: not empty, no colon, no control characters (RFC 7617 section 2). */
  readonly authUsername: string;
  /** Not empty, no control characters. */
  readonly authPassword: string;
  /** Key of the HMAC in X-Payload-Signature: not empty, no control characters. */
  readonly signatureSecret: string;
}

const subject = "createWebhookEndpoint";
const members = ["url", "authUsername", "authPassword", "signatureSecret"];
const unfit = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u;

/** The JSON body of the request. Throws a TypeError, which shows no value, on what a receiver could never verify. */
export function serializeWebhookEndpoint(endpoint: WebhookEndpoint, allowLoopbackHttp: boolean): string {
  assertKnownOptions(subject, endpoint, members);
  const { url, authUsername, authPassword, signatureSecret } = endpoint;
  assertServiceUrl(url, { subject: `${subject}: option url`, allowLoopbackHttp });
  assertCredential("authUsername", authUsername);
  assertCredential("authPassword", authPassword);
  assertCredential("signatureSecret", signatureSecret);
  if (authUsername.includes(":")) {
    throw new TypeError(`${subject}: option authUsername must hold no colon (RFC 7617 section 2)`);
  }
  return JSON.stringify({
    url,
    auth_username: authUsername,
    auth_password: authPassword,
    signature_secret: signatureSecret,
  });
}

function assertCredential(option: string, value: unknown): void {
  if (typeof value === "string" && value !== "" && !unfit.test(value)) return;
  throw new TypeError(
    `${subject}: option ${option} must be a non-empty string without control characters; ` +
      "an empty environment variable is no credential",
  );
}
