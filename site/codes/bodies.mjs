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
import { answered, body, digestOf, keyid, post, privateKey, publicKey, refusalOf, row } from "./provoke.mjs";

const end = (_req, res) => void res.end();
const onJson = (app) => app.post("/", rawBody(), jsonBody(), end);
const sends = (text) => post({ body: text });
const readers = ["rawBody", "httpSignatureVerify", "contentDigest", "webhookHmac"];
const json = ["jsonBody", "payoutEndpoint", "webhookEndpoint"];

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
  "ip-not-allowed": row(
    401,
    ["ipAllowlist", "payoutEndpoint", "webhookEndpoint"],
    "The client's address is in none of the listed ranges.",
    "If it is the service's address, add it to `addresses.allow`. If it is your proxy's, set `trust proxy`, and on Fastify the plugin's `clientAddress: (request) => request.ip`: [behind a proxy](../guide/behind-a-proxy.md).",
    "A list that does not have the caller's address:",
    answered((app) => app.post("/", ipAllowlist({ allow: ["192.0.2.10"] }), end), post()),
  ),
  "ip-unknown": row(
    401,
    ["ipAllowlist", "payoutEndpoint", "webhookEndpoint"],
    "The caller's address is unknown. With fetch, the route got no `clientAddress` in its second argument. With Express, the request came by a unix socket, or the text is not an address: `unknown`, a port, a zone id.",
    "With fetch, pass the address: [Hono](../guide/hono-nextjs.md). With Express, let the proxy send plain addresses in X-Forwarded-For.",
    "A trusted proxy that says `unknown`:",
    answered(
      (app) => app.set("trust proxy", "loopback").post("/", ipAllowlist({ allow: ["192.0.2.10"] }), end),
      post({ headers: { "X-Forwarded-For": "unknown" } }),
    ),
  ),
  "allowlist-unavailable": row(
    503,
    ["ipAllowlist", "payoutEndpoint", "webhookEndpoint"],
    "There is no usable list of addresses: `liveAllowlist` has none yet or only an outdated one, or `isAllowed` of your own source threw.",
    "Await `ready()` before the server listens, and repair the source; a notice names the fault.",
    "A source that throws:",
    answered((app) => {
      const allow = {
        isAllowed() {
          throw new Error("the database is down");
        },
      };
      app.post("/", ipAllowlist({ allow }), end);
    }, post()),
  ),
  "ip-is-proxy": row(
    401,
    ["ipAllowlist", "payoutEndpoint", "webhookEndpoint"],
    "Every address of the request belongs to a trusted proxy, so the caller is unknown.",
    "Let the proxy send X-Forwarded-For, or lower the hop count of `trust proxy`.",
    "A proxy that names nobody:",
    answered(
      (app) => app.set("trust proxy", "loopback").post("/", ipAllowlist({ allow: ["127.0.0.1"] }), end),
      post(),
    ),
  ),
  "trust-proxy-unsafe": row(
    500,
    ["ipAllowlist", "httpsOnly"],
    "The app's `trust proxy` trusts everybody, so callers choose their own address and scheme. In Fastify nothing is refused: a plugin with `clientAddress` or `scheme` warns once of `trustProxy: true`.",
    'List the proxies: `app.set("trust proxy", ["10.0.0.5"])`, in Fastify `trustProxy: ["10.0.0.5"]`.',
    "`trust proxy` is `true`:",
    answered(
      (app) => app.set("trust proxy", true).post("/", ipAllowlist({ allow: ["192.0.2.10"] }), end),
      post(),
    ),
  ),
  "header-lines-dropped": row(
    431,
    ["payoutEndpoint", "webhookEndpoint"],
    "The request has as many header lines as Node keeps: 1,000 or `server.maxHeadersCount`. Some versions silently drop further ones, such as an X-Forwarded-For that a proxy puts last.",
    "Send fewer.",
    "A thousand lines:",
    answered(
      (app) => app.post("/", payoutEndpoint(payouts()), end),
      post({
        headers: {
          Host: "platform.example",
          ...Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`x${n}`, ""])),
        },
      }),
    ),
  ),
  "host-repeated": row(
    400,
    ["payoutEndpoint", "webhookEndpoint"],
    "The request has more than one Host line (RFC 9112 section 3.2), which Node accepts.",
    "Send one.",
    "Two Host lines:",
    answered((app) => app.post("/", payoutEndpoint(payouts()), end), {
      ...post(),
      headers: ["Host", "platform.example", "Host", "other.example"],
    }),
  ),
  "body-too-large": row(
    413,
    readers,
    "Content-Length or the body itself exceeds `limit`.",
    "Raise `limit`, or send less.",
    "101 kB where 100 are the limit:",
    answered(onJson, sends(`"${"x".repeat(101 * 1024)}"`)),
  ),
  "body-length-mismatch": row(
    400,
    readers,
    "The body's length differs from Content-Length.",
    "Correct the sender, or the proxy that changes bodies.",
    "A platform has left half of the body in `req.rawBody`:",
    answered(
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
  ),
  "body-already-consumed": row(
    500,
    readers,
    "A body parser has already read the request and kept no bytes to check.",
    "Mount the endpoint before every body parser, or give the parser `verify: captureRawBody`: [body parsers](../guide/body-parsers.md#a-parser-before-a-check).",
    "`express.json()` in front:",
    answered((app) => {
      app.use(express.json());
      onJson(app);
    }, post()),
  ),
  "content-encoding-unsupported": row(
    415,
    [...readers, "idempotencyGuard"],
    "The body is compressed: Content-Encoding is not `identity`.",
    "Send the body uncompressed.",
    "A body that says gzip:",
    answered(onJson, post({ headers: { "Content-Encoding": "gzip" } })),
  ),
  "transfer-coding-unsupported": row(
    501,
    [...readers, "idempotencyGuard"],
    "Transfer-Encoding is not `chunked` alone; Node decodes no other.",
    "Send the body uncompressed.",
    "`Transfer-Encoding: gzip, chunked`:",
    answered(onJson, post({ headers: { "Transfer-Encoding": "gzip, chunked" } })),
  ),
  "request-aborted": row(
    undefined,
    [...readers, "idempotencyGuard"],
    "The client disconnected before its request was complete, or while it waited for the first attempt.",
    "None: there is nobody to answer, no error handler runs, and nothing is logged.",
    "Its error, as a subscriber of `countersign:guard` gets it:",
    abortedUpload,
  ),
  "media-type-unsupported": row(
    415,
    [...readers, ...json],
    "The request does not have exactly one `Content-Type: application/json`; only `charset=utf-8` may follow. After a check: a handler read `req.body`, and no parser has read that type.",
    "Send that type. GitHub's webhook form and `curl -d` default to `application/x-www-form-urlencoded`: set `application/json`. To take another type, mount its parser after the check: [body parsers](../guide/body-parsers.md).",
    "`text/plain`:",
    answered(onJson, post({ headers: { "Content-Type": "text/plain" } })),
  ),
  "raw-body-missing": row(
    500,
    ["jsonBody"],
    "`jsonBody()` found no captured bytes.",
    "Mount `rawBody()`, or the guard that verifies the body, before it.",
    "`jsonBody()` alone:",
    answered((app) => app.post("/", jsonBody(), end), post()),
  ),
  "json-empty": row(400, json, "The body is empty.", "Send JSON.", "No body:", answered(onJson, sends(""))),
  "json-invalid": row(
    400,
    json,
    "The body is not valid JSON, not valid UTF-8, or has an escaped half of a surrogate pair.",
    "Repair the sender.",
    "A comma too many:",
    answered(onJson, sends('{"a":1,}')),
  ),
  "json-duplicate-key": row(
    400,
    json,
    "An object has one key twice: one parser would take the first value, another the last.",
    "Repair the sender.",
    "Two amounts:",
    answered(onJson, sends('{"amount":1,"amount":1000}')),
  ),
  "json-forbidden-key": row(
    400,
    json,
    "The body has the key `__proto__`, or `constructor` with a `prototype` in it.",
    "Rename the key.",
    "`__proto__`:",
    answered(onJson, sends('{"__proto__":{}}')),
  ),
  "json-number-range": row(
    400,
    json,
    "A number overflows a double.",
    "Send it as a string.",
    "`1e400`:",
    answered(onJson, sends('{"amount":1e400}')),
  ),
  "json-too-deep": row(
    400,
    json,
    "The JSON is nested deeper than `maxDepth`, 64 by default.",
    "Flatten it, or raise `maxDepth`.",
    "65 arrays, each in another one:",
    answered(onJson, sends("[".repeat(65) + "]".repeat(65))),
  ),
  "json-too-many-values": row(
    413,
    ["webhookEndpoint"],
    "The JSON has too many members and elements, counted before they are built: for a webhook more than 20 times `maxEvents`, and at least 20,000.",
    "Send less at a time.",
    "Eleven values where ten are the limit:",
    () => refusalOf("webhookEndpoint", () => parseJsonBytes(Buffer.from("[1,1,1,1,1,1,1,1,1,1,1]"), 64, 10)),
  ),
  "content-digest-missing": row(
    401,
    ["contentDigest", "httpSignatureVerify"],
    "Content-Digest is missing or empty.",
    "Send the field.",
    "Without the field:",
    digests([]),
  ),
  "content-digest-invalid": row(
    401,
    ["contentDigest", "httpSignatureVerify"],
    "The field is not a strict dictionary of digests: a repeated member, parameters, non-canonical base64, a wrong length, or more than 4 members.",
    "Write it with `createContentDigest`.",
    "A digest as hex text:",
    digests(["Content-Digest", "sha-256=abc"]),
  ),
  "content-digest-unsupported": row(
    401,
    ["contentDigest", "httpSignatureVerify"],
    "No digest has an accepted algorithm.",
    "Send SHA-256.",
    "SHA-512 alone, where SHA-256 is asked for:",
    digests(["Content-Digest", digestOf(body, "sha512")]),
  ),
  "content-digest-mismatch": row(
    401,
    ["contentDigest", "httpSignatureVerify"],
    "The digest does not fit the body as it arrived.",
    "Compute it over exactly the bytes that are sent; look for a proxy that re-encodes bodies.",
    "A digest of another body:",
    digests(["Content-Digest", digestOf(`${body} `)]),
  ),
  "repr-digest-missing": row(
    401,
    ["verifyReprDigest"],
    "Repr-Digest is missing or empty.",
    "Send the field.",
    "Without the field:",
    reprDigests([]),
  ),
  "repr-digest-invalid": row(
    401,
    ["verifyReprDigest"],
    "As `content-digest-invalid`, for Repr-Digest.",
    "Write it with `createReprDigest`.",
    "A digest as hex text:",
    reprDigests(["Repr-Digest", "sha-256=abc"]),
  ),
  "repr-digest-unsupported": row(
    401,
    ["verifyReprDigest"],
    "No digest has an accepted algorithm.",
    "Send one that Want-Repr-Digest names.",
    "SHA-512 alone:",
    reprDigests(["Repr-Digest", digestOf(body, "sha512")]),
  ),
  "repr-digest-mismatch": row(
    401,
    ["verifyReprDigest"],
    "The digest does not fit the whole representation.",
    "Compute it over the whole representation, not a part of it.",
    "A digest of another one:",
    reprDigests(["Repr-Digest", digestOf(`${body} `)]),
  ),
  "checked-after-claim": row(
    500,
    ["ipAllowlist", "httpSignatureVerify", "webhookBasicAuth", "webhookHmac"],
    "A check of the caller is mounted after `idempotencyGuard()` or `receiveWebhook()`: a stranger could claim a key, or be paid.",
    "Mount these two as the last ones of the route, after all checks of the caller.",
    "The check that finds a key claimed already:",
    () =>
      refusalOf("httpSignatureVerify", () => {
        const req = {};
        keyClaims.mark(req);
        keyClaims.assertNone("httpSignatureVerify", req);
      }),
  ),
  "payout-invalid": row(
    400,
    "payoutEndpoint",
    "Fields are missing or malformed. The answer lists each: JSON pointer, code and detail.",
    "Correct the instruction.",
    "A payout without an amount:",
    answered(onPayouts(), () => payoutRequest({ text: changed({ amount: undefined }) })),
  ),
  "business-unknown": row(
    400,
    "payoutEndpoint",
    "`findBusiness` knows no business with this id and this IBAN.",
    "Register the business, or let the service correct the IBAN.",
    "`findBusiness` gives `false`:",
    answered(onPayouts({ findBusiness: () => false }), () => payoutRequest()),
  ),
  "business-lookup-unavailable": row(
    503,
    "payoutEndpoint",
    "`findBusiness` threw, rejected, or took longer than `lookupTimeoutMs`.",
    "Repair the look-up; the retry runs.",
    "A look-up whose database is down:",
    answered(
      onPayouts({ findBusiness: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")) }),
      () => payoutRequest(),
    ),
  ),
  "method-not-allowed": row(
    405,
    ["payoutEndpoint", "webhookEndpoint"],
    "The method is not POST. For payouts this answers signed requests only; any other is 401.",
    "Send POST.",
    "A signed PUT:",
    answered(onPayouts(), () => payoutRequest({ method: "PUT" })),
  ),
  "path-not-mounted": row(
    404,
    "payoutEndpoint",
    "A signed request for a path below the endpoint's own, or for another spelling of it.",
    "Call exactly the mounted path; mount the endpoint together with its path.",
    "One segment more:",
    answered(onPayouts(), () => payoutRequest({ path: "/api/v1/transaction/1" })),
  ),
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
