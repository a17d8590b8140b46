import { createHash, createHmac } from "node:crypto";
import {
  explainAddress,
  explainBasicAuth,
  explainClaim,
  explainDigest,
  explainHmac,
  explainPayload,
  type Explanation,
} from "../../dist/explain/index.js";

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
const field = (algorithm: string, data: string | Buffer): string =>
  `${algorithm.replace("sha", "sha-")}=:${createHash(algorithm).update(data).digest("base64")}:`;
const digest = (value: string, name = "Content-Digest"): Promise<Explanation> =>
  explainDigest({ rawHeaders: [name, value] }, body);
const stripe = (data: string | Buffer, options: object = {}): Promise<Explanation> =>
  webhook(
    `t=1700000000,v1=${hmac(data).toString("hex")}`,
    { secrets: [secret], scheme: "stripe", ...options },
    "Stripe-Signature",
  );
const credentials = [
  { username: "old-service", password: "pass of old" },
  { username: "Service", password: "Zoë:12345678" },
];
const basic = (line: string | undefined): Promise<Explanation> =>
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

/** Mistakes of other checks than that of signatures, in the words of `other-mistakes.txt`. */
export const otherMistakes: Readonly<Record<string, () => Explanation | Promise<Explanation>>> = {
  "HMAC: an honest one": () => webhook(base64(hmac(body))),
  "HMAC: another secret": () => webhook(base64(hmac(body, "yet another"))),
  "HMAC: the secret decoded from base64": () =>
    webhook(base64(hmac(body, Buffer.from(secret.slice(6), "base64")))),
  "HMAC: the secret with a line feed": () => webhook(base64(hmac(body, `${secret}\n`))),
  "HMAC: the secret decoded from hex": () =>
    webhook(base64(hmac(body, Buffer.from("00ff".repeat(8), "hex"))), { secrets: ["00ff".repeat(8)] }),
  "HMAC: the secret as text where it is base64": () =>
    webhook(base64(hmac(body, "c2VjcmV0")), {
      secrets: ["c2VjcmV0"],
      scheme: { header: "X-Payload-Signature", secretEncoding: "base64" },
    }),
  "HMAC: the body serialised again": () => webhook(base64(hmac(JSON.stringify(JSON.parse(text), null, 2)))),
  "HMAC: in hex": () => webhook(hmac(body).toString("hex")),
  "HMAC: in base64 where hex is asked for": () =>
    webhook(base64(hmac(body)), { scheme: { header: "X-Payload-Signature", signatureEncodings: ["hex"] } }),
  "HMAC: with a prefix": () => webhook(`sha256=${base64(hmac(body))}`),
  "HMAC: without the prefix": () =>
    webhook(hmac(body).toString("hex"), { scheme: "github" }, "X-Hub-Signature-256"),
  "HMAC: by SHA-1": () => webhook(hmac(body, secret, "sha1").toString("hex")),
  "HMAC: by SHA-512": () => webhook(base64(hmac(body, secret, "sha512"))),
  "HMAC: the time signed too": () => stripe(body, { clock: () => 1_700_000_000_000 }),
  "HMAC: an old delivery": () => stripe(`1700000000.${text}`),
  "HMAC: the field of another sender": () =>
    webhook(`sha256=${hmac(body).toString("hex")}`, {}, "X-Hub-Signature-256"),
  "HMAC: a field of another name": () => webhook(base64(hmac(body)), {}, "X-Signature"),
  "HMAC: no field": () => explainHmac({ rawHeaders: [] }, body, { secrets: [secret] }),
  "HMAC: no HMAC in the field": () => webhook("hello"),
  "basic: an honest one": () => basic(token("Service:Zoë:12345678")),
  "basic: another password": () => basic(token("Service:guess")),
  "basic: another username": () => basic(token("servant:Zoë:12345678")),
  "basic: the username in another letter case": () => basic(token("service:Zoë:12345678")),
  "basic: neither": () => basic(token("a:b")),
  "basic: in ISO 8859-1": () => basic(token("Service:Zoë:12345678", "latin1")),
  "basic: encoded twice": () =>
    basic(`Basic ${Buffer.from(token("Service:Zoë:12345678").slice(6)).toString("base64")}`),
  "basic: not encoded": () => basic("Basic Service:Zoe"),
  "basic: no scheme": () => basic(token("Service:Zoë:12345678").slice(6)),
  "basic: Basic without a blank": () => basic(token("Service:Zoë:12345678").replace(" ", "")),
  "basic: Bearer": () => basic("Bearer abc"),
  "basic: URL encoding": () => basic(token(`Service:${encodeURIComponent("Zoë:12345678")}`)),
  "basic: a line feed after it": () => basic(token("old-service:pass of old\n")),
  "basic: exchanged": () => basic(token("pass of old:old-service")),
  "basic: without padding": () => basic(token("old-service:pass of old").replace(/=+$/, "")),
  "basic: no password": () => basic(token("Service:")),
  "basic: nothing": () => basic(undefined),
  "address: an honest one": () => address("198.51.100.7", undefined),
  "address: a proxy that is not trusted": () => address("10.0.0.1", "198.51.100.7"),
  "address: one proxy too few": () => address("10.0.0.1", "198.51.100.7, 10.0.0.2", 1),
  "address: one proxy too many": () => address("10.0.0.1", "203.0.113.9, 198.51.100.7", 2),
  "address: a function that trusts one proxy too few": () =>
    address("10.0.0.1", "198.51.100.7, 10.0.0.2", (_, hop) => hop < 1),
  "address: a function that trusts one proxy too many": () =>
    address("10.0.0.1", "203.0.113.9, 198.51.100.7", (_, hop) => hop < 2),
  "address: everybody is trusted": () => address("10.0.0.1", "198.51.100.7", () => true),
  "address: another caller": () => address("10.0.0.1", "203.0.113.9", ["10.0.0.0/8"]),
  "address: a port behind it": () => address("10.0.0.1", "198.51.100.7:4711", 1),
  "address: none": () => explainAddress({ peer: undefined, allow: ["198.51.100.7"], rawHeaders: [] }),
  "claim: done": () => claim({ state: "done" }),
  "claim: held": () => claim({ state: "held", reason: "lease-expired" }),
  "claim: running": () => claim({ state: "running", remainingMs: 4200 }),
  "claim: a lease that has ended": () => claim({ state: "running", remainingMs: -8000 }),
  "claim: free": () => explainClaim({ key: "k", record: undefined }),
  "claim: done at a time that is not known": () =>
    explainClaim({ key: "k", record: { ...record, fence: 3, state: "done" } }),
  "payload: a member of another name": () =>
    payload({ businessId: "b" }, "/business_id", "required", "is required"),
  "payload: a member at another place": () =>
    payload({ iban: "x", beneficiary: {} }, "/beneficiary/iban", "required", "is required"),
  "payload: a member that is missing": () => payload({}, "/amount", "required", "is required"),
  "payload: a member of another type": () =>
    payload({ amount: 10 }, "/amount", "wrong-type", "must be an object"),
  "payload: a member with another value": () =>
    payload(
      { beneficiary: { iban: "DE00" } },
      "/beneficiary/iban",
      "invalid-iban",
      "must be an IBAN with valid check digits",
    ),
  "payload: no object": () => payload([], "", "wrong-type", "must be an object"),
  "digest: an honest one": () => digest(field("sha256", body)),
  "digest: the field Digest": () => digest("SHA-256=x", "Digest"),
  "digest: none": () => explainDigest({ rawHeaders: [] }, body),
  "digest: one right and one wrong": () => digest(`${field("sha256", body)}, ${field("sha512", "")}`),
  "digest: of a body that was not read": () =>
    explainDigest({ rawHeaders: ["Content-Digest", field("sha256", "")] }, undefined),
  "digest: of something else": () => digest(field("sha256", "else")),
};
