export { payloadVerifier, verifiedPayload, verifyPayload, type VerifiedPayload } from "./check.ts";
export { webhookHmac, type WebhookHmacOptions } from "./middleware.ts";
export { signPayload, signPayloadHeaders } from "./payload-headers.ts";
export type { PayloadSignatureCode } from "./payload-signature.ts";
export { signatureSchemes, type SignatureScheme } from "./scheme.ts";
