export type { BasicAuthCode } from "./codes.ts";
export { basicAuthVerifier, verifiedCredential, verifyBasicAuth } from "./check.ts";
export { webhookBasicAuth, type VerifyCredential, type WebhookBasicAuthOptions } from "./middleware.ts";
export type { VerifiedCredential } from "./credentials.ts";
export type { BasicAuthChallenge, BasicAuthCredential } from "./options.ts";
