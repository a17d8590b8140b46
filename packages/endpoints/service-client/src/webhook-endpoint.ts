import { OptionError } from "@countersign/core";
import { option, readOptions, type OptionOwner, type OptionTable } from "@countersign/core/door";
import { readUrl } from "./options.ts";
import { serviceUrlFault } from "./service-url.ts";

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

/** The call that takes it, in messages. */
export const factoryName = "createWebhookEndpoint";

const table: OptionTable<WebhookEndpoint> = {
  url: option.own(readUrl),
  authUsername: option.own(readUsername),
  authPassword: option.own(readCredential),
  signatureSecret: option.own(readCredential),
};

const unfit = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u;

/** The JSON body of the request. Throws an OptionError, which shows no value, on what a receiver could never verify. */
export function serializeWebhookEndpoint(endpoint: WebhookEndpoint, allowLoopbackHttp: boolean): string {
  const { url, authUsername, authPassword, signatureSecret } = readOptions(factoryName, table, endpoint);
  const fault = serviceUrlFault(url, allowLoopbackHttp);
  if (fault !== undefined) throw new OptionError(factoryName, { option: "url", what: fault });
  return JSON.stringify({
    url,
    auth_username: authUsername,
    auth_password: authPassword,
    signature_secret: signatureSecret,
  });
}

function readUsername(username: unknown, owner: OptionOwner, name: string): string {
  const read = readCredential(username, owner, name);
  if (!read.includes(":")) return read;
  throw new OptionError(owner, { option: name, what: "must hold no colon (RFC 7617 section 2)" });
}

function readCredential(text: unknown, owner: OptionOwner, name: string): string {
  if (typeof text === "string" && text !== "" && !unfit.test(text)) return text;
  const what =
    "must be a non-empty string without control characters; an empty environment variable is no credential";
  throw new OptionError(owner, { option: name, what });
}
