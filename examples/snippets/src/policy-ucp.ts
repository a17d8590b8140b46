import {
  httpSignatureVerify,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";

// What the platform publishes in the signing_keys of its profile. TEST KEY of
// RFC 9421 appendix B.1.3.
const platformKey = {
  kid: "platform-2026",
  kty: "EC",
  crv: "P-256",
  x: "qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA",
  y: "Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0",
  use: "sig",
  alg: "ES256",
};

/**
 * GET: the query and the body, where there are any, have to be covered too.
 */
export const readPolicy: HttpSignatureVerifyOptions = {
  keys: { "platform-2026": platformKey },
  origin: "https://merchant.example",
  requiredComponents: ["@method", "@authority", "@path", "ucp-agent"],
  requiredParameters: ["created", "keyid"],
  algorithms: ["ecdsa-p256-sha256"],
  windowSeconds: 300,
};

/** POST, PUT, PATCH, DELETE with a body. */
export const writePolicy: HttpSignatureVerifyOptions = {
  ...readPolicy,
  requiredComponents: [
    "@method",
    "@authority",
    "@path",
    "ucp-agent",
    "idempotency-key",
    "content-digest",
    "content-type",
  ],
};

export const verifyRead = httpSignatureVerify(readPolicy);
export const verifyWrite = httpSignatureVerify(writePolicy);
