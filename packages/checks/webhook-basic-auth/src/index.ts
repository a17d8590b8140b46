export type { BasicAuthCode } from "./codes.ts";
export { basicAuthVerifier, verifiedCredential, verifyBasicAuth } from "./check.ts";
export { webhookBasicAuth } from "./middleware.ts";
export type { VerifiedCredential } from "./credentials.ts";
export type {
  BasicAuthChallenge,
  BasicAuthCredential,
  VerifyCredential,
  WebhookBasicAuthOptions,
} from "./options.ts";
