import { keyClaims } from "@countersign/core/internal";
import { guard, receivedRequest, type GuardRequest, type Middleware } from "@countersign/express";
import { payloadVerifier } from "./check.ts";
import type { WebhookHmacOptions as OptionsOf } from "./options.ts";

declare global {
  namespace Express {
    interface WebhookVerification {
      /** The position of the secret that webhookHmac matched. */
      secretIndex?: number | undefined;
    }
    interface Request {
      /** What the webhook guards matched. For display and for retiring secrets; decide by `verifiedPayload()`. */
      webhook?: WebhookVerification | undefined;
    }
  }
}

/** `Native` is the request of the framework. */
export type WebhookHmacOptions<Native = GuardRequest> = OptionsOf<Native>;

/** Verifies a webhook's HMAC over the received body, captured if needed. 401 by default, 503 if `secrets` fails. Throws a TypeError. */
export function webhookHmac(options: WebhookHmacOptions): Middleware {
  const verify = payloadVerifier(options, "webhookHmac");
  return guard("webhookHmac", async (req) => {
    keyClaims.assertNone("webhookHmac", req);
    const { secretIndex } = await verify(receivedRequest(req), req);
    req.webhook = { ...req.webhook, secretIndex };
  });
}
