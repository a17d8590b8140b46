import { contentDigest } from "@countersign/content-digest";
import { guardErrors } from "@countersign/express";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { createOutcomes, type OutcomesOptions } from "countersign/outcomes";
import { payoutEndpoint } from "countersign/payout";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { createServiceClient } from "countersign/client";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { webhookHmac } from "@countersign/webhook-hmac";
import { createWebhookHandler, httpsOnly, receiveWebhook, webhookEndpoint } from "countersign/webhooks";
import express from "express";

const app = express();
const nonces = memoryNonceStore();
const store = memoryIdempotencyStore();
const keys = { key: "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=" };

app.use(ipAllowlist({ allow: ["127.0.0.1"] }), rawBody(), contentDigest());
app.post(
  "/parts",
  httpSignatureVerify({ keys, nonces }),
  jsonBody(),
  idempotencyGuard({ store, scope: "orders", key: (req) => (req.body as { id: unknown }).id }),
  (req, res) => {
    const keyid: string | undefined = req.signature?.keyid;
    res.json({ keyid, fence: req.idempotency?.fence, bytes: req.rawBody?.length });
  },
);
app.post(
  "/whole",
  payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys, nonces },
    idempotency: { store },
  }),
  (req, res) => {
    const iban: string | undefined = req.payout?.beneficiary.iban;
    res.json({ iban });
  },
);
const handler = createWebhookHandler({ store, fallback: "ignore" })
  .on("buyer.status_changed", ({ data }) => {
    const status: string = data.new_status;
    return status;
  })
  .onAny((event, { attempt, signal }) => {
    if (event.type === "payment_request.repayment.reminder") {
      const days: number = event.data.days_from_due_date;
      return days + attempt;
    }
    return signal.aborted;
  });
const credentials = [{ username: "service", password: "test-password" }];
app.use(
  "/hooks/whole",
  webhookEndpoint({ basicAuth: { credentials }, hmac: { secrets: ["test-secret"] }, handler }),
);
app.post(
  "/hooks/parts",
  httpsOnly(),
  webhookBasicAuth({ credentials }),
  webhookHmac({ secret: "test-secret" }),
  (req, _res, next) => {
    const indexes: (number | undefined)[] = [req.webhook?.credentialIndex, req.webhook?.secretIndex];
    next(indexes.length === 2 ? undefined : new Error("never"));
  },
  receiveWebhook(handler),
);
void createServiceClient({ baseUrl: "https://service.example", apiKey: "test-key" });
export const outcomesOf = (stores: OutcomesOptions<object, "async">["stores"]) =>
  createOutcomes({ stores, url: "https://service.example/outcomes" });
app.use(guardErrors());
