export type { BasicAuthCode } from "./codes.ts";
export { basicAuthVerifier, verifiedCredential, verifyBasicAuth } from "./check.ts";
export { webhookBasicAuth, type WebhookBasicAuthOptions } from "./middleware.ts";
export type { VerifiedCredential } from "./credentials.ts";
export type { BasicAuthCredential } from "./options.ts";
