import { keyClaims } from "@countersign/core/internal";
import { guard, receivedRequest, type GuardRequest, type Middleware } from "@countersign/express";
import { basicAuthVerifier } from "./check.ts";
import type { WebhookBasicAuthOptions as OptionsOf } from "./options.ts";

declare global {
  namespace Express {
    interface WebhookVerification {
      /** The position of the credential that webhookBasicAuth matched; undefined where `verify` decided. */
      credentialIndex?: number | undefined;
    }
    interface Request {
      /** What the webhook guards matched. For display and for retiring credentials; decide by `verifiedCredential()`. */
      webhook?: WebhookVerification | undefined;
    }
  }
}

/** `Native` is the request of the framework. */
export type WebhookBasicAuthOptions<Native = GuardRequest> = OptionsOf<Native>;

/** Admits basic authentication (RFC 7617) in constant time. Refuses with 401 by default, 503 if `verify` fails. Throws a TypeError. */
export function webhookBasicAuth(options: WebhookBasicAuthOptions): Middleware {
  const verify = basicAuthVerifier(options, "webhookBasicAuth");
  return guard("webhookBasicAuth", async (req) => {
    keyClaims.assertNone("webhookBasicAuth", req);
    const { index } = await verify(receivedRequest(req), req);
    req.webhook = { ...req.webhook, credentialIndex: index };
  });
}
