import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";

// TEST KEY, public knowledge: RFC 9421 appendix B.1.4. Never use it outside tests.
const rfcPrivateKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----`;

// TEST KEY: another one, so that a signature by the wrong key can be made.
const strangerPrivateKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB
-----END PRIVATE KEY-----`;

export const serviceKey: KeyObject = createPrivateKey(rfcPrivateKey);
export const servicePublicPem: string = createPublicKey(serviceKey)
  .export({ type: "spki", format: "pem" })
  .toString();
export const strangerKey: KeyObject = createPrivateKey(strangerPrivateKey);
export const strangerPublicPem: string = createPublicKey(strangerKey)
  .export({ type: "spki", format: "pem" })
  .toString();
