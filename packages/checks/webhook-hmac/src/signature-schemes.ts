import type { SecretEncoding, SignatureAlgorithm, SignatureEncoding } from "./payload-signature.ts";

/** How a sender signs: in which fields what stands, and of which bytes the HMAC is. Data, checked by who gets it. */
export interface SignatureScheme {
  /** The name of the field with the signature, none that has another use. */
  readonly header: string;
  /** The hash of the HMAC. Default `sha256`. */
  readonly algorithm?: SignatureAlgorithm | undefined;
  /** How a signature is written. Default `["base64"]`. */
  readonly signatureEncodings?: readonly SignatureEncoding[] | undefined;
  /** What stands right before each signature, such as `sha256=` or `v1,`. Entries of a list that begin otherwise are not looked at. */
  readonly prefix?: string | undefined;
  /** What separates the entries of the field, where it may have several. Default: it is one signature. */
  readonly separator?: "," | " " | undefined;
  /** Where the time of the signature stands, in whole seconds: in a field of its own, or in an entry that begins so. Default: nowhere. */
  readonly timestamp?: { readonly header: string } | { readonly prefix: string } | undefined;
  /** The field with the identifier of the message. Default none. */
  readonly id?: string | undefined;
  /** What is signed: text with `{body}` in it, and `{timestamp}` and `{id}` where there are some. Default `{body}`. */
  readonly signed?: string | undefined;
  /** How a secret stands for the key's bytes. Default `utf8`. */
  readonly secretEncoding?: SecretEncoding | undefined;
  /** What may stand before a secret and is no part of it, such as `whsec_`. Default none. */
  readonly secretPrefix?: string | undefined;
}

/** The names of {@link signatureSchemes}. */
export type SchemeName = "github" | "shopify" | "slack" | "standard-webhooks" | "stripe" | "svix";

const standardWebhooks: SignatureScheme = Object.freeze({
  header: "webhook-signature",
  prefix: "v1,",
  separator: " ",
  timestamp: Object.freeze({ header: "webhook-timestamp" }),
  id: "webhook-id",
  signed: "{id}.{timestamp}.{body}",
  secretEncoding: "base64",
  secretPrefix: "whsec_",
});

/** How well-known senders sign. For one who signs like another, in fields of its own: `{ ...signatureSchemes.stripe, header }`. */
export const signatureSchemes: Readonly<Record<SchemeName, SignatureScheme>> = Object.freeze({
  github: Object.freeze({
    header: "X-Hub-Signature-256",
    signatureEncodings: ["hex"] as const,
    prefix: "sha256=",
  }),
  shopify: Object.freeze({ header: "X-Shopify-Hmac-Sha256" }),
  slack: Object.freeze({
    header: "X-Slack-Signature",
    signatureEncodings: ["hex"] as const,
    prefix: "v0=",
    timestamp: Object.freeze({ header: "X-Slack-Request-Timestamp" }),
    signed: "v0:{timestamp}:{body}",
  }),
  "standard-webhooks": standardWebhooks,
  stripe: Object.freeze({
    header: "Stripe-Signature",
    signatureEncodings: ["hex"] as const,
    prefix: "v1=",
    separator: ",",
    timestamp: Object.freeze({ prefix: "t=" }),
    signed: "{timestamp}.{body}",
  }),
  svix: Object.freeze({
    ...standardWebhooks,
    header: "svix-signature",
    timestamp: Object.freeze({ header: "svix-timestamp" }),
    id: "svix-id",
  }),
});
