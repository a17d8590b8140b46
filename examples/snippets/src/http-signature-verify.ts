import { guardErrors } from "@countersign/express";
import {
  httpSignatureVerify,
  memoryNonceStore,
} from "@countersign/http-signature-verify";
import express, { type Express } from "express";

// TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
const publicKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

export const app: Express = express();

const verify = httpSignatureVerify({
  keys: { "test-key-ed25519": publicKey },
  nonces: memoryNonceStore(),
});

app.post("/reports", verify, (req, res) => {
  res.json({ signedBy: req.signature?.keyid, bytes: req.rawBody?.length });
});

app.use(guardErrors());
