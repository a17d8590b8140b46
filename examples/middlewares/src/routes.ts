import { contentDigest } from "@countersign/content-digest";
import {
  guardErrors,
  type Drainable,
  type GuardRequest,
} from "@countersign/express";
import {
  httpSignatureVerify,
  verifiedSignature,
  type KeyStore,
  type NonceStore,
} from "@countersign/http-signature-verify";
import {
  answer,
  idempotencyGuard,
  refuse,
  type HandlerAnswer,
} from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { jsonBody, rawBody, textAt } from "@countersign/raw-body";
import type { SqliteStores } from "@countersign/store-sql";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import {
  createWebhookHandler,
  httpsOnly,
  receiveWebhook,
} from "countersign/webhooks";
import type { Express } from "express";
import type { Ledger } from "./ledger.js";

/** What the middlewares are given. Put your own in the place of any. */
export interface Parts {
  /** The addresses from which payouts come. */
  readonly allow: readonly string[];
  readonly keys: KeyStore;
  readonly nonces: NonceStore;
  /** Where keys commit, together with what the ledger writes. */
  readonly stores: SqliteStores;
  readonly ledger: Ledger;
  readonly webhookPath: string;
  readonly basicAuth: {
    readonly username: string;
    readonly password: string;
  };
  readonly secret: string;
}

/** Mounts both routes on an app of Express 5 or 4. Returns what to drain. */
export function mountRoutes(app: Express, parts: Parts): Drainable[] {
  const { allow, keys, nonces, stores, ledger } = parts;
  const { webhookPath, basicAuth, secret } = parts;
  const handler = createWebhookHandler({
    stores,
    fallback: (event) => ledger.record(event),
  });
  // #region mount
  const payOnce = idempotencyGuard({
    stores,
    scope: "payout", // apart from the keys of other guards
    key: (req) => textAt(req, "/idempotency_key"),
    handle: (req) => pay(req, ledger), // in the transaction of the key
  });
  app.use("/api/v1/transaction", ipAllowlist({ allow }));
  app.post(
    "/api/v1/transaction",
    rawBody({ limit: "64kb" }),
    contentDigest({ algorithms: ["sha-256"] }),
    httpSignatureVerify({ keys, nonces }),
    jsonBody({ maxDepth: 8 }),
    payOnce,
  );
  app.all(
    webhookPath,
    httpsOnly(),
    webhookBasicAuth(basicAuth),
    webhookHmac({ secret }),
    receiveWebhook(handler), // handles each event once
    guardErrors({ hide: true }), // a refusal looks like an unknown path
  );
  app.use(guardErrors()); // all other 401s look the same
  // #endregion mount
  return [payOnce, handler];
}

// <operation_key>.<from_id>.<to_id>
const aKey = /^[^.\s]+(\.[^.\s]+){2,}$/;
// More than zero, with at most two decimals.
const anAmount = /^(?=.*[1-9])\d{1,15}(\.\d{1,2})?$/;

// #region pay
/** Runs in the transaction of the key: an error rolls back, and frees it. */
function pay(req: GuardRequest, ledger: Ledger): HandlerAnswer {
  // Undefined on a route that has lost its check. Not req.signature, to which
  // every middleware can write.
  const signature = verifiedSignature(req);
  if (signature === undefined) throw new Error("no signature was verified");
  const text = (pointer: string): string => textAt(req, pointer) ?? "";
  const key = text("/idempotency_key");
  if (!aKey.test(key)) throw refuse("idempotency-key-malformed");
  const amount = text("/amount/value");
  if (!anAmount.test(amount)) throw refuse("amount-invalid");
  ledger.pay({
    key,
    keyid: signature.keyid,
    business: text("/business_id"),
    iban: text("/beneficiary/iban"),
    amount,
  });
  return answer(200, { status: "acknowledged" });
}
// #endregion pay
