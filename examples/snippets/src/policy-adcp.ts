import {
  httpSignatureVerify,
  memoryNonceStore,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";

// Keys of buyers that are published for request signing. TEST KEY of RFC 9421
// appendix B.1.4.
const keys = { "buyer-2026": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=" };

export const policy: HttpSignatureVerifyOptions = {
  keys,
  nonces: memoryNonceStore(),
  origin: "https://seller.example",
  tag: { require: "adcp/request-signing/v1" },
  requiredComponents: [
    "@method",
    "@target-uri",
    "@authority",
    "content-type",
    "content-digest",
  ],
  requiredParameters: ["created", "expires", "nonce", "keyid", "alg", "tag"],
  algorithms: ["ed25519", "ecdsa-p256-sha256"],
  windowSeconds: 300,
  clockSkewSeconds: 60,
};

export const verifyBuyer = httpSignatureVerify(policy);
