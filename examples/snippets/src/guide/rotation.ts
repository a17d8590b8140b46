import type { CachingKeyStore } from "@countersign/http-signature-verify";
import {
  webhookEndpoint,
  type WebhookEndpointOptions,
} from "countersign/webhooks";
import type { Express } from "express";

/** What the sender signs and authenticates with: the new one stands first. */
export interface Accepted {
  readonly secrets: readonly string[];
  readonly credentials: readonly {
    readonly username: string;
    readonly password: string;
  }[];
}

/**
 * Accepts webhooks under each secret and each password, and calls `onOld` for
 * a webhook that came with another one than the first: count it.
 */
export function receiveWebhooks(
  app: Express,
  path: string,
  { secrets, credentials }: Accepted,
  handler: WebhookEndpointOptions["handler"],
  onOld: (what: "password" | "secret") => void,
): void {
  const receive = webhookEndpoint({
    basicAuth: { credentials },
    hmac: { secrets },
    handler,
  });
  app.use(path, (req, res, next) => {
    res.once("finish", () => {
      const { credentialIndex = 0, secretIndex = 0 } = req.webhook ?? {};
      if (credentialIndex > 0) onOld("password");
      if (secretIndex > 0) onOld("secret");
    });
    next();
  });
  app.use(path, receive);
}

/**
 * After this call a SIGHUP makes the process forget the keys that it
 * remembers. Returns what ends that.
 */
export function forgetOnHangup(keys: CachingKeyStore): () => void {
  const forget = (): void => keys.forget();
  process.on("SIGHUP", forget);
  return () => void process.off("SIGHUP", forget);
}
