export type { PayloadSignatureCode } from "./codes.ts";
export { payloadVerifier, verifiedPayload, verifyPayload, type VerifiedPayload } from "./check.ts";
export {
  signPayloadHeaders,
  type PayloadHeaders,
  type SignPayloadHeadersOptions,
} from "./payload-headers.ts";
export { webhookHmac, type SecretsFunction, type WebhookHmacOptions } from "./middleware.ts";
export {
  signPayload,
  type SecretEncoding,
  type SignatureAlgorithm,
  type SignatureEncoding,
} from "./payload-signature.ts";
export { signatureSchemes, type SchemeName, type SignatureScheme } from "./signature-schemes.ts";
export type { VerifyPayloadOptions } from "./options.ts";
