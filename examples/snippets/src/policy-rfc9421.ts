import {
  httpSignatureVerify,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";

// TEST KEY of RFC 9421 appendix B.1.4.
const publicKey = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";

export const policy: HttpSignatureVerifyOptions = {
  keys: { "test-key-ed25519": publicKey },
  origin: "https://example.com",
  requiredComponents: [
    "date",
    "@method",
    "@path",
    "@authority",
    "content-type",
    "content-length",
  ],
  requiredParameters: ["created", "keyid"],
  allowUnsignedQuery: true,
  allowUnsignedBody: true,
};

export const verify = httpSignatureVerify(policy);
