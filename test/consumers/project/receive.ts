import { contentDigest } from "@countersign/content-digest";
import { guardErrors } from "@countersign/guard";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import { idempotencyGuard, memoryIdempotencyStore } from "@countersign/idempotency-guard";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { payoutEndpoint } from "@countersign/payout";
import { jsonBody, rawBody } from "@countersign/raw-body";
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
  idempotencyGuard({ store, key: (req) => (req.body as { id: unknown }).id }),
  (req, res) => {
    const keyid: string | undefined = req.signature?.keyid;
    res.json({ keyid, fence: req.idempotency?.fence, bytes: req.rawBody?.length });
  },
);
app.post("/whole", payoutEndpoint({ keys, nonces, store, allowIps: ["127.0.0.1"] }), (req, res) => {
  const iban: string | undefined = req.payout?.beneficiary.iban;
  res.json({ iban });
});
app.use(guardErrors());
