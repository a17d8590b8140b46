export { verifiedCredential, webhookBasicAuth } from "./middleware.ts";
export type { VerifiedCredential } from "./credentials.ts";
export type {
  BasicAuthChallenge,
  BasicAuthCredential,
  VerifyCredential,
  WebhookBasicAuthOptions,
} from "./options.ts";
