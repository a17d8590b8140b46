import { generateKeyPairSync } from "node:crypto";
import {
  defaultComponents,
  importVerificationKey,
  sign,
  verify,
} from "@countersign/http-message-signatures";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const key = importVerificationKey("service-2026", publicKey);

// Of {"hello": "world"}.
const digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
const rawHeaders = [
  "Content-Type",
  "application/json",
  "Content-Digest",
  digest,
];
const request = { method: "POST", target: "/api/v1/transaction", rawHeaders };

const { signatureInput, signature } = sign(request, {
  key: privateKey,
  keyid: "service-2026",
});
rawHeaders.push("Signature-Input", signatureInput, "Signature", signature);

// Throws a MessageSignatureError with a code, unless the signature is right.
export const received = verify(request, {
  requiredComponents: defaultComponents,
  algorithms: ["ed25519"],
  windowSeconds: 60,
  clockSkewSeconds: 30,
  keys: (keyid) => (keyid === key.keyid ? key : undefined),
});
