// The example in the README of payout: its key is the test key of RFC 9421, appendix B.1.4.
import { app } from "./app.js";
import { payTwice, whileListening } from "./send.mjs";

// TEST KEY, public knowledge.
const privateKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----`;

// The addresses that it allows are the service's, which the proxy in front of it names.
app.set("trust proxy", "loopback");
const instruction = { businessId: "biz_1" };
await whileListening(app, (origin) =>
  payTwice(origin, { keyid: "test-key-ed25519", privateKey, instruction }),
);
