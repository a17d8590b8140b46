export { verifiedPayload, webhookHmac, type VerifiedPayload } from "./middleware.ts";
export { signPayload, type SignPayloadOptions } from "./payload-signature.ts";
export type { SecretsFunction, WebhookHmacOptions } from "./options.ts";
export type { SecretEncoding } from "./secret.ts";
export type { SignatureEncoding } from "./signature-field.ts";
