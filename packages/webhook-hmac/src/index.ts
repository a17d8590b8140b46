export type { PayloadSignatureCode } from "./codes.ts";
export { payloadVerifier, verifiedPayload, verifyPayload, type VerifiedPayload } from "./check.ts";
export { webhookHmac } from "./middleware.ts";
export {
  signPayload,
  type SecretEncoding,
  type SignatureEncoding,
  type SignPayloadOptions,
} from "./payload-signature.ts";
export type { SecretsFunction, VerifyPayloadOptions, WebhookHmacOptions } from "./options.ts";
