export type { PayloadSignatureCode } from "./codes.ts";
export { payloadVerifier, verifiedPayload, verifyPayload, type VerifiedPayload } from "./check.ts";
export {
  signPayloadHeaders,
  type PayloadHeaders,
  type SignPayloadHeadersOptions,
} from "./payload-headers.ts";
export { webhookHmac } from "./middleware.ts";
export {
  signPayload,
  type SecretEncoding,
  type SignatureAlgorithm,
  type SignatureEncoding,
} from "./payload-signature.ts";
export { signatureSchemes, type SchemeName, type SignatureScheme } from "./signature-schemes.ts";
export type { SecretsFunction, VerifyPayloadOptions, WebhookHmacOptions } from "./options.ts";
