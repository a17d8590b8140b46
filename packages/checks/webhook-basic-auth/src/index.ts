export {
  basicAuthVerifier,
  verifiedCredential,
  verifyBasicAuth,
  type BasicAuthCode,
  type VerifiedCredential,
} from "./check.ts";
export { webhookBasicAuth, type WebhookBasicAuthOptions } from "./middleware.ts";
export type { BasicAuthCredential } from "./options.ts";
