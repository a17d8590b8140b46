import { createHash, createHmac } from "node:crypto";
import {
  explainAddress,
  explainBasicAuth,
  explainClaim,
  explainDigest,
  explainHmac,
  explainPayload,
  type Explanation,
} from "../dist/index.js";

/** A mistake of another check than that of signatures. */
export interface OtherRow {
  readonly mistake: string;
  readonly explain: () => Explanation;
  readonly what: string;
  readonly says: string;
}

const text = '{"events":[{"name":"Zoë","amount":10.50}]}';
const body = Buffer.from(text);
const secret = "whsec_c2VjcmV0LW9mLW5vYm9keS0xMjM0NTY3ODkw";
const hmac = (data: string | Buffer, key: string | Buffer = secret, algorithm = "sha256") =>
  createHmac(algorithm, key).update(data).digest();
const webhook = (value: string, options: object = {}, header = "X-Payload-Signature") =>
  explainHmac({ rawHeaders: [header, value] }, body, {
    secrets: ["another secret of nobody", secret],
    ...options,
  });
const base64 = (bytes: Buffer): string => bytes.toString("base64");
const credentials = [
  { username: "old-service", password: "pass of old" },
  { username: "Service", password: "Zoë:12345678" },
];
const basic = (line: string | undefined): Explanation =>
  explainBasicAuth({ rawHeaders: line === undefined ? [] : ["Authorization", line] }, credentials);
const token = (value: string, encoding: "utf8" | "latin1" = "utf8"): string =>
  `Basic ${Buffer.from(value, encoding).toString("base64")}`;
const address = (
  peer: string,
  forwarded: string | undefined,
  trustProxy?: Parameters<typeof explainAddress>[0]["trustProxy"],
): Explanation =>
  explainAddress({
    peer,
    trustProxy,
    allow: ["198.51.100.0/24"],
    rawHeaders: forwarded === undefined ? [] : ["X-Forwarded-For", forwarded],
  });
const nowMs = Date.UTC(2026, 0, 1, 12);
const record = { token: "t", fence: (nowMs - 90_000) * 1000, fingerprint: "f" };
const claim = (rest: object): Explanation =>
  explainClaim({ key: "payout:op.a.b", record: { ...record, ...rest } as never, nowMs });
const payload = (content: unknown, pointer: string, code: string, detail: string): Explanation =>
  explainPayload(Buffer.from(JSON.stringify(content)), [{ pointer, code, detail }]);

export const otherMistakes: readonly OtherRow[] = [
  {
    mistake: "HMAC: an honest one",
    explain: () => webhook(base64(hmac(body))),
    what: "verifies",
    says: "X-Payload-Signature is the HMAC of the body.",
  },
  {
    mistake: "HMAC: another secret",
    explain: () => webhook(base64(hmac(body, "yet another"))),
    what: "hmac-wrong-secret",
    says: "Compare the secrets of both sides: X-Payload-Signature does not fit any of the 2 secrets in any usual reading, nor the body in any usual form, so the sender has another secret or another body.",
  },
  {
    mistake: "HMAC: the secret decoded from base64",
    explain: () => webhook(base64(hmac(body, Buffer.from(secret.slice(6), "base64")))),
    what: "hmac-secret-prefix",
    says: "Set secretEncoding, or the secret itself, to what the sender takes as its key: X-Payload-Signature fits secret number 2 without its prefix, decoded from base64.",
  },
  {
    mistake: "HMAC: the secret with a line feed",
    explain: () => webhook(base64(hmac(body, `${secret}\n`))),
    what: "hmac-secret-line-feed",
    says: "Set secretEncoding, or the secret itself, to what the sender takes as its key: X-Payload-Signature fits secret number 2 with a line feed behind it.",
  },
  {
    mistake: "HMAC: the secret decoded from hex",
    explain: () =>
      explainHmac(
        { rawHeaders: ["X-Payload-Signature", base64(hmac(body, Buffer.from("00ff".repeat(8), "hex")))] },
        body,
        { secrets: ["00ff".repeat(8)] },
      ),
    what: "hmac-secret-hex",
    says: "Set secretEncoding, or the secret itself, to what the sender takes as its key: X-Payload-Signature fits secret number 1 decoded from hex.",
  },
  {
    mistake: "HMAC: the secret as text where it is base64",
    explain: () =>
      explainHmac({ rawHeaders: ["X-Payload-Signature", base64(hmac(body, "c2VjcmV0"))] }, body, {
        secrets: ["c2VjcmV0"],
        scheme: { header: "X-Payload-Signature", secretEncoding: "base64" },
      }),
    what: "hmac-secret-utf8",
    says: "Set secretEncoding, or the secret itself, to what the sender takes as its key: X-Payload-Signature fits secret number 1 as UTF-8 text.",
  },
  {
    mistake: "HMAC: the body serialised again",
    explain: () => webhook(base64(hmac(JSON.stringify(JSON.parse(text), null, 2)))),
    what: "hmac-of-body-re-serialised",
    says: "Compute X-Payload-Signature over the bytes that are sent: it fits secret number 2 over the JSON serialised again, indented by two spaces.",
  },
  {
    mistake: "HMAC: in hex",
    explain: () => webhook(hmac(body).toString("hex")),
    what: "hmac-encoding",
    says: "Write X-Payload-Signature in base64, or set signatureEncodings: it is in hex.",
  },
  {
    mistake: "HMAC: in base64 where hex is asked for",
    explain: () =>
      webhook(base64(hmac(body)), { scheme: { header: "X-Payload-Signature", signatureEncodings: ["hex"] } }),
    what: "hmac-encoding",
    says: "Write X-Payload-Signature in hex, or set signatureEncodings: it is in base64.",
  },
  {
    mistake: "HMAC: with a prefix",
    explain: () => webhook(`sha256=${base64(hmac(body))}`),
    what: "hmac-prefix",
    says: 'Write X-Payload-Signature without a prefix, or set prefix: the signature stands there behind "sha256=".',
  },
  {
    mistake: "HMAC: without the prefix",
    explain: () => webhook(hmac(body).toString("hex"), { scheme: "github" }, "X-Hub-Signature-256"),
    what: "hmac-prefix",
    says: 'Write X-Hub-Signature-256 behind "sha256=", or set prefix: the signature stands there without a prefix.',
  },
  {
    mistake: "HMAC: by SHA-1",
    explain: () => webhook(hmac(body, secret, "sha1").toString("hex")),
    what: "hmac-algorithm",
    says: "Set algorithm, or let the sender use sha256: X-Payload-Signature fits secret number 2 by sha1.",
  },
  {
    mistake: "HMAC: by SHA-512",
    explain: () => webhook(base64(hmac(body, secret, "sha512"))),
    what: "hmac-algorithm",
    says: "Set algorithm, or let the sender use sha256: X-Payload-Signature fits secret number 2 by sha512.",
  },
  {
    mistake: "HMAC: the time signed too",
    explain: () =>
      explainHmac(
        { rawHeaders: ["Stripe-Signature", `t=1700000000,v1=${hmac(body).toString("hex")}`] },
        body,
        { secrets: [secret], scheme: "stripe", clock: () => 1_700_000_000_000 },
      ),
    what: "hmac-of-other-content",
    says: 'Agree on what is signed: Stripe-Signature fits secret number 1 over the body alone, and the scheme says "{timestamp}.{body}".',
  },
  {
    mistake: "HMAC: an old delivery",
    explain: () =>
      explainHmac(
        { rawHeaders: ["Stripe-Signature", `t=1700000000,v1=${hmac(`1700000000.${text}`).toString("hex")}`] },
        body,
        { secrets: [secret], scheme: "stripe" },
      ),
    what: "hmac-expired",
    says: "Sign each delivery anew, and compare the clocks: the time of the signature is older than toleranceSeconds allow.",
  },
  {
    mistake: "HMAC: the field of another sender",
    explain: () => webhook(`sha256=${hmac(body).toString("hex")}`, {}, "X-Hub-Signature-256"),
    what: "hmac-other-scheme",
    says: 'Set scheme to "github", or let the sender sign in X-Payload-Signature: the request has X-Hub-Signature-256 instead.',
  },
  {
    mistake: "HMAC: a field of another name",
    explain: () => webhook(base64(hmac(body)), {}, "X-Signature"),
    what: "hmac-field-name",
    says: 'Set header to the field that the sender uses, or let it send X-Payload-Signature: the request has "X-Signature".',
  },
  {
    mistake: "HMAC: no field",
    explain: () => explainHmac({ rawHeaders: [] }, body, { secrets: [secret] }),
    what: "hmac-missing",
    says: "Send X-Payload-Signature with the HMAC of the body: the request has none.",
  },
  {
    mistake: "HMAC: no HMAC in the field",
    explain: () => webhook("hello"),
    what: "hmac-form",
    says: "Write X-Payload-Signature as an HMAC by sha256 in base64.",
  },
  {
    mistake: "basic: an honest one",
    explain: () => basic(token("Service:Zoë:12345678")),
    what: "verifies",
    says: "The username and password are accepted.",
  },
  {
    mistake: "basic: another password",
    explain: () => basic(token("Service:guess")),
    what: "basic-password",
    says: "Compare the passwords of both sides: the username is that of credential number 2, the password is not.",
  },
  {
    mistake: "basic: another username",
    explain: () => basic(token("servant:Zoë:12345678")),
    what: "basic-username",
    says: "Compare the usernames of both sides: the password is that of credential number 2, the username is not.",
  },
  {
    mistake: "basic: the username in another letter case",
    explain: () => basic(token("service:Zoë:12345678")),
    what: "basic-username-letter-case",
    says: "Compare the usernames of both sides: the password is that of credential number 2, the username is not, by its letter case.",
  },
  {
    mistake: "basic: neither",
    explain: () => basic(token("a:b")),
    what: "basic-both",
    says: "Compare the credentials of both sides: neither the username nor the password is one that is accepted.",
  },
  {
    mistake: "basic: in ISO 8859-1",
    explain: () => basic(token("Service:Zoë:12345678", "latin1")),
    what: "basic-latin1",
    says: "Encode username and password of Authorization as UTF-8 before base64: they are in ISO 8859-1.",
  },
  {
    mistake: "basic: encoded twice",
    explain: () => basic(`Basic ${Buffer.from(token("Service:Zoë:12345678").slice(6)).toString("base64")}`),
    what: "basic-base64-twice",
    says: "Encode username and password of Authorization in base64 once: they are encoded twice.",
  },
  {
    mistake: "basic: not encoded",
    explain: () => basic("Basic Service:Zoe"),
    what: "basic-not-encoded",
    says: "Encode username and password of Authorization in base64: they stand there as plain text.",
  },
  {
    mistake: "basic: no scheme",
    explain: () => basic(token("Service:Zoë:12345678").slice(6)),
    what: "basic-scheme-missing",
    says: "Begin Authorization with Basic and a blank: the base64 stands there alone.",
  },
  {
    mistake: "basic: Basic without a blank",
    explain: () => basic(token("Service:Zoë:12345678").replace(" ", "")),
    what: "basic-scheme-form",
    says: "Begin Authorization with Basic and one blank: something else stands between them.",
  },
  {
    mistake: "basic: Bearer",
    explain: () => basic("Bearer abc"),
    what: "basic-scheme",
    says: "Send Authorization by the scheme Basic: it is by bearer.",
  },
  {
    mistake: "basic: URL encoding",
    explain: () => basic(token(`Service:${encodeURIComponent("Zoë:12345678")}`)),
    what: "basic-url-encoded",
    says: "Send username and password of Authorization without URL encoding.",
  },
  {
    mistake: "basic: a line feed behind it",
    explain: () => basic(token("old-service:pass of old\n")),
    what: "basic-white-space",
    says: "Send username and password of Authorization without white space or a line end behind them.",
  },
  {
    mistake: "basic: exchanged",
    explain: () => basic(token("pass of old:old-service")),
    what: "basic-exchanged",
    says: "Send the username before the password in Authorization: they are exchanged.",
  },
  {
    mistake: "basic: without padding",
    explain: () => basic(token("old-service:pass of old").replace(/=+$/, "")),
    what: "basic-token-form",
    says: "Write the base64 of Authorization with its padding, with + and /, and over UTF-8.",
  },
  {
    mistake: "basic: no password",
    explain: () => basic(token("Service:")),
    what: "basic-part-missing",
    says: "Send username and password in Authorization: the password is empty.",
  },
  {
    mistake: "basic: nothing",
    explain: () => basic(undefined),
    what: "basic-missing",
    says: "Send Authorization with the username and password: the request has none.",
  },
  {
    mistake: "address: an honest one",
    explain: () => address("198.51.100.7", undefined),
    what: "verifies",
    says: 'The address "198.51.100.7" is in the list.',
  },
  {
    mistake: "address: a proxy that is not trusted",
    explain: () => address("10.0.0.1", "198.51.100.7"),
    what: "address-proxy-not-trusted",
    says: 'Set trust proxy to the addresses of your proxies, of which there would be 1: taken was the address of the socket, "10.0.0.1", and admitted would be entry 1 of X-Forwarded-For from its end, "198.51.100.7".',
  },
  {
    mistake: "address: one proxy too few",
    explain: () => address("10.0.0.1", "198.51.100.7, 10.0.0.2", 1),
    what: "address-further-hop",
    says: 'Set trust proxy to the addresses of your proxies, of which there would be 2: taken was the address of entry 1 of X-Forwarded-For from its end, "10.0.0.2", and admitted would be entry 2 of X-Forwarded-For from its end, "198.51.100.7".',
  },
  {
    mistake: "address: one proxy too many",
    explain: () => address("10.0.0.1", "203.0.113.9, 198.51.100.7", 2),
    what: "address-nearer-hop",
    says: 'Count 1 proxy in trust proxy, if there are no more: taken was the address of entry 2 of X-Forwarded-For from its end, "203.0.113.9", which the caller may have written, and admitted would be entry 1 of X-Forwarded-For from its end, "198.51.100.7".',
  },
  {
    mistake: "address: a function that trusts one proxy too few",
    explain: () => address("10.0.0.1", "198.51.100.7, 10.0.0.2", (_, hop) => hop < 1),
    what: "address-further-hop",
    says: 'Let the function of trust proxy trust "10.0.0.2" at hop 1, if it is a proxy of yours: taken was the address of entry 1 of X-Forwarded-For from its end, "10.0.0.2", and admitted would be entry 2 of X-Forwarded-For from its end, "198.51.100.7".',
  },
  {
    mistake: "address: a function that trusts one proxy too many",
    explain: () => address("10.0.0.1", "203.0.113.9, 198.51.100.7", (_, hop) => hop < 2),
    what: "address-nearer-hop",
    says: 'Let the function of trust proxy trust no hop from 1 on, if there are no more: taken was the address of entry 2 of X-Forwarded-For from its end, "203.0.113.9", which the caller may have written, and admitted would be entry 1 of X-Forwarded-For from its end, "198.51.100.7".',
  },
  {
    mistake: "address: everybody is trusted",
    explain: () => address("10.0.0.1", "198.51.100.7", () => true),
    what: "address-everybody-trusted",
    says: "Set trust proxy to the addresses of your proxies: it trusts every address, so that callers choose their own.",
  },
  {
    mistake: "address: another caller",
    explain: () => address("10.0.0.1", "203.0.113.9", ["10.0.0.0/8"]),
    what: "address-not-listed",
    says: 'Put "203.0.113.9" into the list if it is the caller\'s, and no other hop is: taken was the address of entry 1 of X-Forwarded-For from its end, "203.0.113.9".',
  },
  {
    mistake: "address: a port behind it",
    explain: () => address("10.0.0.1", "198.51.100.7:4711", 1),
    what: "address-form",
    says: 'Let the proxy write addresses alone into X-Forwarded-For: it has "198.51.100.7:4711", with a port.',
  },
  {
    mistake: "address: none",
    explain: () => explainAddress({ peer: undefined, allow: ["198.51.100.7"], rawHeaders: [] }),
    what: "address-unknown",
    says: "Let the request come over a socket with an address, or from a proxy that names the client: there is none.",
  },
  {
    mistake: "claim: done",
    explain: () => claim({ state: "done" }),
    what: "claim-done",
    says: 'Do not send it again: the payment of "payout:op.a.b" has been made by the attempt that began at 2026-01-01T11:58:30.000Z, 90 s ago.',
  },
  {
    mistake: "claim: held",
    explain: () => claim({ state: "held", reason: "lease-expired" }),
    what: "claim-held",
    says: 'Look for the payment, then decide by countersign keys resolve: "payout:op.a.b" is held for an operator since its attempt that began at 2026-01-01T11:58:30.000Z, 90 s ago, whose process died or stood still.',
  },
  {
    mistake: "claim: running",
    explain: () => claim({ state: "run", remainingMs: 4200 }),
    what: "claim-running",
    says: 'Wait and send it again: an attempt that began at 2026-01-01T11:58:30.000Z, 90 s ago works on "payout:op.a.b", and its lease lasts 5 s more unless it is renewed.',
  },
  {
    mistake: "claim: a lease that has ended",
    explain: () => claim({ state: "run", remainingMs: -8000 }),
    what: "claim-lease-ended",
    says: 'Send it again, or look for the process that died: the attempt that began at 2026-01-01T11:58:30.000Z, 90 s ago that works on "payout:op.a.b" has not renewed its lease, which ended 8 s ago.',
  },
  {
    mistake: "claim: free",
    explain: () => explainClaim({ key: "k", record: undefined }),
    what: "claim-free",
    says: 'Send the request: nobody holds "k", or its retention has ended.',
  },
  {
    mistake: "claim: another payload",
    explain: () =>
      explainClaim({ key: "k", record: { ...record, fence: 3, state: "done" }, fingerprint: "g" }),
    what: "claim-done",
    says: 'Do not send it again: the payment of "k" has been made by the attempt with the fence 3.',
  },
  {
    mistake: "payload: a member of another name",
    explain: () => payload({ businessId: "b" }, "/business_id", "required", "is required"),
    what: "payload-member-name",
    says: 'Call the member "/business_id" by that name: the payload has "businessId" in its place.',
  },
  {
    mistake: "payload: a member at another place",
    explain: () => payload({ iban: "x", beneficiary: {} }, "/beneficiary/iban", "required", "is required"),
    what: "payload-member-place",
    says: 'Put the member "iban" at "/beneficiary/iban": the payload has it at "/iban".',
  },
  {
    mistake: "payload: a member that is missing",
    explain: () => payload({}, "/amount", "required", "is required"),
    what: "payload-member-missing",
    says: 'Send the member "/amount": it is required.',
  },
  {
    mistake: "payload: a member of another type",
    explain: () => payload({ amount: 10 }, "/amount", "wrong-type", "must be an object"),
    what: "payload-member-type",
    says: 'Send "/amount" otherwise: it must be an object, and is a number.',
  },
  {
    mistake: "payload: a member with another value",
    explain: () =>
      payload(
        { beneficiary: { iban: "DE00" } },
        "/beneficiary/iban",
        "invalid-iban",
        "must be an IBAN with valid check digits",
      ),
    what: "payload-member-value",
    says: 'Send "/beneficiary/iban" otherwise: it must be an IBAN with valid check digits.',
  },
  {
    mistake: "payload: no object",
    explain: () => payload([], "", "wrong-type", "must be an object"),
    what: "payload-member-type",
    says: "Send the body otherwise: it must be an object, and is a list.",
  },
  {
    mistake: "digest: an honest one",
    explain: () =>
      explainDigest(
        { rawHeaders: ["Content-Digest", `sha-256=:${createHash("sha256").update(body).digest("base64")}:`] },
        body,
      ),
    what: "verifies",
    says: "Content-Digest fits the body.",
  },
  {
    mistake: "digest: the field Digest",
    explain: () => explainDigest({ rawHeaders: ["Digest", "SHA-256=x"] }, body),
    what: "digest-other-field",
    says: "Send the digest in the field Content-Digest, as sha-256=:<base64>:, not in Digest.",
  },
  {
    mistake: "digest: none",
    explain: () => explainDigest({ rawHeaders: [] }, body),
    what: "digest-missing",
    says: "Send Content-Digest: sha-256=:<base64>: with the digest of the body.",
  },
  {
    mistake: "digest: one right and one wrong",
    explain: () =>
      explainDigest(
        {
          rawHeaders: [
            "Content-Digest",
            `sha-256=:${createHash("sha256").update(body).digest("base64")}:, sha-512=:${createHash("sha512").update("").digest("base64")}:`,
          ],
        },
        body,
      ),
    what: "digest-of-empty-body",
    says: "Compute Content-Digest over the bytes that are sent: it is the SHA-512 digest of an empty body.",
  },
  {
    mistake: "digest: of a body that was not read",
    explain: () =>
      explainDigest(
        { rawHeaders: ["Content-Digest", `sha-256=:${createHash("sha256").update("").digest("base64")}:`] },
        undefined,
      ),
    what: "body-not-known",
    says: "Compare Content-Digest with the bytes that are sent: the body was not read, so it is not known whether they fit.",
  },
  {
    mistake: "digest: of something else",
    explain: () =>
      explainDigest(
        {
          rawHeaders: ["Content-Digest", `sha-256=:${createHash("sha256").update("else").digest("base64")}:`],
        },
        body,
      ),
    what: "digest-unexplained",
    says: "Compute Content-Digest over the bytes that are sent: it fits neither the body nor any usual form of it, so the body was changed on its way, or the digest is that of another one.",
  },
];
