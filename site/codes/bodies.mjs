import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect } from "node:net";
import { verifyContentDigest, verifyReprDigest } from "@countersign/content-digest";
import { keyClaims, parseJsonBytes } from "@countersign/core/internal";
import { sign } from "@countersign/http-message-signatures";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { ipAllowlist } from "@countersign/ip-allowlist";
import { payoutEndpoint } from "countersign/payout";
import { jsonBody, rawBody } from "@countersign/raw-body";
import express from "express";
import { answered, body, digestOf, keyid, post, privateKey, publicKey, refusalOf } from "./provoke.mjs";

const end = (_req, res) => void res.end();
const onJson = (app) => app.post("/", rawBody(), jsonBody(), end);
const sends = (text) => post({ body: text });

const digests = (headers) => () =>
  refusalOf("contentDigest", () =>
    verifyContentDigest({ rawHeaders: headers }, Buffer.from(body), { algorithms: ["sha-256"] }),
  );
const reprDigests = (headers) => () =>
  refusalOf("verifyReprDigest", () =>
    verifyReprDigest({ rawHeaders: headers }, Buffer.from(body), { algorithms: ["sha-256"] }),
  );

/** The options of a payout endpoint that takes what `signed()` makes. */
export const payouts = (more = {}) => ({
  addresses: { allow: ["127.0.0.1"] },
  signature: { keys: { [keyid]: publicKey }, nonces: memoryNonceStore() },
  idempotency: { store: memoryIdempotencyStore() },
  ...more,
});

/** A signed payout as an HTTP request to `answered()`. */
export function payoutRequest({ text = body, path = "/api/v1/transaction", method = "POST" } = {}) {
  const headers = { "Content-Type": "application/json", "Content-Digest": digestOf(text) };
  const message = { method, target: path, rawHeaders: Object.entries(headers).flat() };
  const { signatureInput, signature } = sign(message, { key: privateKey, keyid });
  return {
    method,
    path,
    headers: { ...headers, "Signature-Input": signatureInput, Signature: signature },
    body: text,
  };
}

const onPayouts = (more) => (app) =>
  app.use("/api/v1/transaction", payoutEndpoint(payouts(more)), (_req, res) => void res.json({}));
const changed = (change) => JSON.stringify({ ...JSON.parse(body), ...change });

export const bodies = {
  "ip-not-allowed": answered((app) => app.post("/", ipAllowlist({ allow: ["192.0.2.10"] }), end), post()),
  "ip-unknown": answered(
    (app) => app.set("trust proxy", "loopback").post("/", ipAllowlist({ allow: ["192.0.2.10"] }), end),
    post({ headers: { "X-Forwarded-For": "unknown" } }),
  ),
  "allowlist-unavailable": answered((app) => {
    const allow = {
      isAllowed() {
        throw new Error("the database is down");
      },
    };
    app.post("/", ipAllowlist({ allow }), end);
  }, post()),
  "ip-is-proxy": answered(
    (app) => app.set("trust proxy", "loopback").post("/", ipAllowlist({ allow: ["127.0.0.1"] }), end),
    post(),
  ),
  "trust-proxy-unsafe": answered(
    (app) => app.set("trust proxy", true).post("/", ipAllowlist({ allow: ["192.0.2.10"] }), end),
    post(),
  ),
  "header-lines-dropped": answered(
    (app) => app.post("/", payoutEndpoint(payouts()), end),
    post({
      headers: {
        Host: "platform.example",
        ...Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`x${n}`, ""])),
      },
    }),
  ),
  "host-repeated": answered((app) => app.post("/", payoutEndpoint(payouts()), end), {
    ...post(),
    headers: ["Host", "platform.example", "Host", "other.example"],
  }),
  "body-too-large": answered(onJson, sends(`"${"x".repeat(101 * 1024)}"`)),
  "body-length-mismatch": answered(
    (app) =>
      app.post(
        "/",
        express.raw({ type: "*/*" }),
        (req, _res, next) => {
          req.rawBody = req.body.subarray(1);
          next();
        },
        rawBody(),
        end,
      ),
    post(),
  ),
  "body-already-consumed": answered((app) => {
    app.use(express.json());
    onJson(app);
  }, post()),
  "content-encoding-unsupported": answered(onJson, post({ headers: { "Content-Encoding": "gzip" } })),
  "transfer-coding-unsupported": answered(
    onJson,
    post({ headers: { "Transfer-Encoding": "gzip, chunked" } }),
  ),
  "request-aborted": abortedUpload,
  "media-type-unsupported": answered(onJson, post({ headers: { "Content-Type": "text/plain" } })),
  "raw-body-missing": answered((app) => app.post("/", jsonBody(), end), post()),
  "json-empty": answered(onJson, sends("")),
  "json-invalid": answered(onJson, sends('{"a":1,}')),
  "json-lone-surrogate": answered(onJson, sends('{"name":"\\ud83d"}')),
  "json-duplicate-key": answered(onJson, sends('{"amount":1,"amount":1000}')),
  "json-forbidden-key": answered(onJson, sends('{"__proto__":{}}')),
  "json-number-range": answered(onJson, sends('{"amount":1e400}')),
  "json-too-deep": answered(onJson, sends("[".repeat(65) + "]".repeat(65))),
  "json-too-many-values": () =>
    refusalOf("webhookEndpoint", () => parseJsonBytes(Buffer.from("[1,1,1,1,1,1,1,1,1,1,1]"), 64, 10)),
  "content-digest-missing": digests([]),
  "content-digest-invalid": digests(["Content-Digest", "sha-256=abc"]),
  "content-digest-unsupported": digests(["Content-Digest", digestOf(body, "sha512")]),
  "content-digest-mismatch": digests(["Content-Digest", digestOf(`${body} `)]),
  "repr-digest-missing": reprDigests([]),
  "repr-digest-invalid": reprDigests(["Repr-Digest", "sha-256=abc"]),
  "repr-digest-unsupported": reprDigests(["Repr-Digest", digestOf(body, "sha512")]),
  "repr-digest-mismatch": reprDigests(["Repr-Digest", digestOf(`${body} `)]),
  "checked-after-claim": () =>
    refusalOf("httpSignatureVerify", () => {
      const req = {};
      keyClaims.mark(req);
      keyClaims.assertNone("httpSignatureVerify", req);
    }),
  "payout-invalid": answered(onPayouts(), () => payoutRequest({ text: changed({ amount: undefined }) })),
  "business-unknown": answered(onPayouts({ findBusiness: () => false }), () => payoutRequest()),
  "business-lookup-unavailable": answered(
    onPayouts({ findBusiness: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")) }),
    () => payoutRequest(),
  ),
  "method-not-allowed": answered(onPayouts(), () => payoutRequest({ method: "PUT" })),
  "path-not-mounted": answered(onPayouts(), () => payoutRequest({ path: "/api/v1/transaction/1" })),
};

async function abortedUpload() {
  const app = express();
  app.post("/", rawBody(), end);
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const heard = new Promise((resolve) => {
    const listen = (event) => {
      unsubscribe("countersign:guard", listen);
      resolve(event);
    };
    subscribe("countersign:guard", listen);
  });
  const socket = connect(server.address().port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: platform.example\r\nContent-Length: 100\r\n\r\n{");
  setTimeout(() => socket.destroy(), 50);
  const { guard, code, outcome } = await heard;
  server.close();
  return { code, text: JSON.stringify({ guard, outcome, code }) };
}
