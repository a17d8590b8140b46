export type { PayloadSignatureCode } from "./codes.ts";
export { payloadVerifier, verifiedPayload, verifyPayload, type VerifiedPayload } from "./check.ts";
export {
  signPayloadHeaders,
  type PayloadHeaders,
  type SignPayloadHeadersOptions,
} from "./payload-headers.ts";
export { webhookHmac, type WebhookHmacOptions } from "./middleware.ts";
export { signPayload } from "./payload-signature.ts";
export { signatureSchemes, type SignatureScheme } from "./signature-schemes.ts";
export type { VerifyPayloadOptions } from "./options.ts";
