import { constants, createPublicKey, sign } from "node:crypto";
import { ed25519ph } from "@noble/curves/ed25519.js";
import {
  body,
  digestPlan,
  ecKey,
  ecPublic,
  header,
  line,
  mistaken,
  now,
  pemOf,
  rsaKey,
  rsaPublic,
  samplePath,
  serviceKey,
  servicePublicPem,
  sha,
  strangerKey,
  type Mistake,
  type SigningPlan,
} from "./signed-with-mistake.ts";

const query = "?to=a%20b&from=x";
const values: Readonly<Record<string, string>> = {
  "@method": "POST",
  "@path": samplePath,
  "@query": query,
  "@authority": "platform.example",
  "@scheme": "https",
  "@target-uri": `https://platform.example${samplePath}`,
  "@request-target": samplePath,
  "content-type": "application/json",
  "x-tenant": "Blue Whale",
};
export const covering = (...names: readonly string[]): SigningPlan => ({
  covered: names.map((name) => [`"${name}"`, values[name] ?? "x"] as const),
});
const queryPlan = {
  path: samplePath + query,
  ...covering("@method", "@path", "@query", "content-type"),
};
const withQuery = { requiredComponents: ["@method", "@path", "@query"], allowUnsignedBody: true };
const names = ["@method", "@authority", "@path", "@scheme", "@target-uri", "@request-target", "x-tenant"];
const withAuthority = {
  requiredComponents: ["@method", "@path"],
  allowUnsignedBody: true,
  origin: "https://platform.example",
};
const ec: Mistake = {
  plan: { parameters: { alg: '"ecdsa-p256-sha256"' } },
  options: { keys: { "test-key": pemOf(ecPublic) }, algorithms: ["ecdsa-p256-sha256"] },
};
const rsa: Mistake = {
  plan: { parameters: { alg: '"rsa-pss-sha512"' } },
  options: {
    keys: { "test-key": { kty: "RSA", alg: "PS512", ...rsaPublic.export({ format: "jwk" }) } },
    algorithms: ["rsa-pss-sha512"],
  },
};
const strangerPem = pemOf(createPublicKey(strangerKey));
const twoKeys = { keys: { "test-key": servicePublicPem, "second-key": strangerPem } };
const p1363 = { key: ecKey, dsaEncoding: "ieee-p1363" } as const;
const seed = Buffer.from(serviceKey.export({ format: "jwk" }).d ?? "", "base64url");

/** A second signature beside the first one, each under the label of the other. */
function twoLabels(headers: readonly string[]): readonly string[] {
  const other = mistaken({ plan: { nonce: "another one" } }).rawHeaders;
  const otherOf = (name: string): string => other[other.indexOf(name) + 1]?.slice(5) ?? "";
  const inputs = header("signature-input", (value) => `${value}, sig2=${otherOf("Signature-Input")}`);
  const exchanged = (value: string): string => `sig1=${otherOf("Signature")}, sig2=${value.slice(5)}`;
  return header("signature", exchanged)(inputs(headers));
}

function sortedParameters(value: string): string {
  const end = value.indexOf(")") + 1;
  const parameters = value.slice(end + 1).split(";");
  parameters.sort();
  return `${value.slice(0, end)};${parameters.join(";")}`;
}

type Change = (value: string) => string;
const signing = (name: string, change: Change): Mistake => ({ base: line(`"${name}"`, change) });
const signingQuery = (name: string, change: Change): Mistake => ({
  ...signing(name, change),
  plan: queryPlan,
  options: withQuery,
});
const signingTarget = (name: string, change: Change): Mistake => ({
  ...signing(name, change),
  plan: covering(...names),
  headers: ["X-Tenant", "Blue Whale"],
  options: withAuthority,
});
const signingParams = (change: Change): Mistake => signing("@signature-params", change);
/** The parameters of Signature-Input otherwise, rightly signed. */
export const sending = (parameters: Readonly<Record<string, string | undefined>>): Mistake => ({
  plan: { parameters },
});
const input = (change: (value: string) => string | undefined): Mistake => ({
  sent: header("signature-input", change),
});
const field = (change: (value: string) => string | undefined): Mistake => ({
  sent: header("signature", change),
});
const lines = (change: (lines: readonly string[]) => readonly (string | undefined)[]): Mistake => ({
  base: (b) => change(b.split("\n")).join("\n"),
});
const digest = (algorithm: string, of: string | Uint8Array = body): string =>
  sha(algorithm, of).toString("base64");
const sendingDigest = (contentDigest: string): Mistake => ({ plan: { contentDigest } });
const serialised = JSON.stringify(JSON.parse(body), null, 2);

/** What signers do; `mistakes.txt` says which identifier and which first sentence each is explained by. */
export const mistakes: Readonly<Record<string, Mistake>> = {
  "the method in lower case": signing("@method", (v) => v.toLowerCase()),
  "another method": signing("@method", () => "PUT"),
  "the path with a prefix that a proxy takes off": signing("@path", (v) => `/payments${v}`),
  "the path with a prefix that the proxy tells": {
    ...signing("@path", (v) => `/tenants/7${v}`),
    headers: ["X-Forwarded-Prefix", "/tenants/7"],
  },
  "the path without its prefix": signing("@path", () => "/transaction"),
  "the path as a full URL": signing("@path", (v) => `https://platform.example${v}`),
  "the path decoded": { ...signing("@path", decodeURIComponent), plan: { path: "/api/v1/trans%20action" } },
  "the path with a slash at its end": signing("@path", (v) => `${v}/`),
  "the path without its first slash": signing("@path", (v) => v.slice(1)),
  "the path with the query": signingQuery("@path", (v) => v + query),
  "the query without its question mark": signingQuery("@query", (v) => v.slice(1)),
  "the query left out": signingQuery("@query", () => ""),
  "the query re-ordered": signingQuery("@query", () => "?from=x&to=a%20b"),
  "the query decoded": signingQuery("@query", decodeURIComponent),
  "a blank of the query as +": signingQuery("@query", (v) => v.replace("%20", "+")),
  "the authority with a port": signingTarget("@authority", (v) => `${v}:443`),
  "the host of the inner server in place of the authority": {
    ...signingTarget("@authority", () => "10.0.0.7:8080"),
    sent: header("host", () => "10.0.0.7:8080"),
  },
  "the scheme behind a proxy": signingTarget("@scheme", () => "http"),
  "the path alone as the target URI": signingTarget("@target-uri", () => samplePath),
  "the request target with its method": signingTarget("@request-target", (v) => `post ${v}`),
  "a field in lower case": signingTarget("x-tenant", (v) => v.toLowerCase()),
  "a field in quotes": signingTarget("x-tenant", (v) => `"${v}"`),
  "content-type without its charset": {
    ...signing("content-type", () => "application/json"),
    plan: { contentType: "application/json; charset=utf-8" },
  },
  "content-type with a charset that the client adds later": signing(
    "content-type",
    (v) => `${v}; charset=utf-8`,
  ),
  "content-type with a charset spelled otherwise": {
    ...signing("content-type", () => "application/json;charset=UTF-8"),
    plan: { contentType: "application/json; charset=utf-8" },
  },
  "content-digest of the JSON before it is serialised again": signing(
    "content-digest",
    () => `sha-256=:${digest("sha256", serialised)}:`,
  ),
  "content-digest without its name": signing("content-digest", () => digest("sha256")),
  "a line feed at the end of the base": { base: (b) => `${b}\n` },
  "no blank after the colons": { base: (b) => b.replaceAll('": ', '":') },
  "CR LF between the lines": { base: (b) => b.replaceAll("\n", "\r\n") },
  "the lines without anything between them": { base: (b) => b.replaceAll("\n", "") },
  "components of the base without quotes": { base: (b) => b.replaceAll(/^"([^"]*)"/gm, "$1") },
  "components of the base in the case of the headers": {
    base: (b) => b.replace('"content-type":', '"Content-Type":').replace('"content-d', '"Content-D'),
  },
  "components of the base without @": { base: (b) => b.replaceAll(/^"@/gm, '"') },
  "no line @signature-params": lines((all) => all.slice(0, -1)),
  "the line @signature-params first": lines((all) => [all.at(-1), ...all.slice(0, -1)]),
  "a component named and not signed": { base: (b) => b.replace(/"content-type".*\n/, "") },
  "a component signed and not named": {
    base: (b) => b.replace('"content-type"', '"@authority": platform.example\n"content-type"'),
  },
  "the components in another order": lines((all) => [2, 3, 0, 1, 4].map((index) => all[index])),
  "the parameters sorted": signingParams(sortedParameters),
  "the parameters without quotes": signingParams((v) => v.replaceAll(/="([^"]*)"/g, "=$1")),
  "keyId in place of keyid": signingParams((v) => v.replace("keyid", "keyId")),
  "blanks behind the semicolons": signingParams((v) => v.replaceAll(";", "; ")),
  "the label before the parameters": signingParams((v) => `sig1=${v}`),
  "commas between the components of @signature-params": signingParams((v) => v.replaceAll('" "', '", "')),
  "a parameter not signed": signingParams((v) => v.replace(';alg="ed25519"', "")),
  "created taken twice, a second apart": signingParams((v) => v.replace(String(now), String(now - 1))),
  "created signed in milliseconds": signingParams((v) => v.replace(String(now), `${now}000`)),
  "the nonce signed in base64": signingParams((v) =>
    v.replace(/nonce="([^"]*)"/, (_, n: string) => `nonce="${Buffer.from(n).toString("base64")}"`),
  ),
  "the list of components alone": signingParams((v) => v.slice(0, v.indexOf(")") + 1)),
  "the SHA-256 of the base signed": { base: (b) => sha("sha256", b) },
  "the SHA-512 of the base signed": { base: (b) => sha("sha512", b) },
  "the SHA-256 of the base in hex signed": { base: (b) => sha("sha256", b).toString("hex") },
  "the base in base64 signed": { base: (b) => Buffer.from(b).toString("base64") },
  "Ed25519ph in place of Ed25519": { sign: (bytes) => ed25519ph.sign(bytes, seed) },
  "the base hashed before ECDSA hashes it": {
    ...ec,
    base: (b) => sha("sha256", b),
    sign: (bytes) => sign("sha256", bytes, p1363),
  },
  "an ECDSA signature in DER": { ...ec, sign: (bytes) => sign("sha256", bytes, ecKey) },
  "ECDSA by another hash": { ...ec, sign: (bytes) => sign("sha512", bytes, p1363) },
  "RSA by another padding": { ...rsa, sign: (bytes) => sign("sha256", bytes, rsaKey) },
  "the body alone signed": { base: () => body },
  "the digest of the body alone signed": { base: () => sha("sha256", body) },
  "the signing string of draft-cavage signed": lines((all) => [
    `(request-target): post ${samplePath}`,
    "host: platform.example",
    ...all.slice(2, 4).map((text) => text.replaceAll('"', "")),
  ]),
  "the values without their components": lines((all) =>
    all.slice(0, 4).map((text) => text.slice(text.indexOf(": ") + 2)),
  ),
  "the signature in hex": { write: (s) => s.toString("hex") },
  "the signature in hex between colons": { write: (s) => `:${s.toString("hex")}:` },
  "the signature in base64url": {
    plan: { nonce: "with-both-signs-7" },
    write: (s) => `:${s.toString("base64url")}==:`,
  },
  "the signature without colons": { write: (s) => s.toString("base64") },
  "the signature in quotes": { write: (s) => `"${s.toString("base64")}"` },
  "the signature without its padding": { write: (s) => `:${s.toString("base64").replace(/=+$/, "")}:` },
  "the signature in base64 twice": {
    write: (s) => `:${Buffer.from(s.toString("base64")).toString("base64")}:`,
  },
  "the signature with the message behind it": {
    sign: (bytes) => Buffer.concat([sign(null, bytes, serviceKey), bytes]),
  },
  "another known key": { plan: { key: strangerKey }, options: twoKeys },
  "a keyid that is not known, the key is": { plan: { keyid: "production" } },
  "a keyid with a slip": { plan: { keyid: "Test_Key", key: strangerKey } },
  "alg of another spelling": sending({ alg: '"EdDSA"' }),
  "alg without quotes": sending({ alg: "ed25519" }),
  "other labels in the two fields": field((v) => v.replace("sig1", "sig2")),
  "components of Signature-Input without quotes": input((v) =>
    v.replace(/\(.*\)/, "(@method @path content-type content-digest)"),
  ),
  "commas in Signature-Input": input((v) => v.replaceAll('" "', '", "')),
  "Signature-Input without a label": input((v) => v.slice(5)),
  "Signature-Input with keyId": input((v) => v.replace("keyid", "keyId")),
  "the fields of draft-cavage": {
    sent: (h) =>
      header(
        "signature",
        () => 'keyId="test-key",algorithm="hs2019",headers="date",signature="AAAA"',
      )(header("signature-input", () => undefined)(h)),
  },
  "Signature-Input under another name": {
    sent: (h) => h.map((text) => (text === "Signature-Input" ? "X-Signature-Input" : text)),
  },
  "no Signature": field(() => undefined),
  "created in milliseconds": { plan: { created: now * 1000 } },
  "created in quotes": sending({ created: `"${now}"` }),
  "created in local time": { plan: { created: now + 7200 } },
  "a clock that is ahead": { plan: { created: now + 47 } },
  "a signature that is sent again later": { plan: { created: now - 95 } },
  "expires as a duration": sending({ expires: "60" }),
  "a window that is too long": { plan: { lifetime: 300 } },
  "no nonce": sending({ nonce: undefined }),
  "a nonce that is a number": sending({ nonce: "17" }),
  "a component of Signature-Input in upper case": {
    plan: covering("@method", "@path", "Content-Type"),
  },
  "path in place of @path": { plan: covering("@method", "path", "content-type", "content-digest") },
  "content-digest not covered": { plan: covering("@method", "@path", "content-type") },
  "@url in place of @target-uri": { plan: covering("@method", "@target-url") },
  "a signed field that is not sent": {
    plan: covering("@method", "@path", "content-type", "content-digest", "date"),
  },
  "a query that is not signed": { plan: { path: `${samplePath}?a=1` } },
  "Content-Digest of the JSON serialised again": { plan: digestPlan(serialised) },
  "Content-Digest of the body with a line feed": { plan: digestPlan(`${body}\n`) },
  "Content-Digest of the body in another encoding": { plan: digestPlan(Buffer.from(body, "latin1")) },
  "Content-Digest of no body": { plan: digestPlan("") },
  "Content-Digest in hex": sendingDigest(`sha-256=:${sha("sha256", body).toString("hex")}:`),
  "Content-Digest without colons": sendingDigest(`sha-256=${digest("sha256")}`),
  "Content-Digest by SHA-1 under the name of SHA-256": sendingDigest(`sha-256=:${digest("sha1")}:`),
  "Content-Digest by SHA-1": sendingDigest(`sha=:${digest("sha1")}:`),
  "Content-Digest with SHA256 for sha-256": sendingDigest(`SHA256=:${digest("sha256")}:`),
  "the signatures of two labels exchanged": { sent: twoLabels, options: { label: "sig1" } },
  "a label that is not looked at": { options: { label: "payout" } },
  "the body of the digest re-encoded before it is signed": signing(
    "content-digest",
    () => `sha-256=:${digest("sha256", Buffer.from(body, "latin1"))}:`,
  ),
  "single quotes in Signature-Input": input((v) => v.replaceAll('"', "'")),
  "escaped quotes in Signature-Input": input((v) => v.replaceAll('"', '\\"')),
  "commas between the parameters of Signature-Input": input((v) => v.replaceAll(";", ", ")),
  "created as a date": sending({ created: "2023-11-14T22:13:20Z" }),
  "Signature without a label": field((v) => v.slice(5)),
  "expires in milliseconds": sending({ expires: String((now + 60) * 1000) }),
  "algorithm in place of alg in Signature-Input": sending({ alg: undefined, algorithm: '"ed25519"' }),
  "@signature-params in the list": { plan: covering("@method", "@signature-params") },
  "a full URL as the request target": { received: { target: `https://platform.example${samplePath}` } },
  "a method override": { headers: ["X-HTTP-Method-Override", "DELETE"] },
  "RSA: the base hashed before RSA hashes it": {
    ...rsa,
    base: (b) => sha("sha512", b),
    sign: (bytes) =>
      sign("sha512", bytes, { key: rsaKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 }),
  },
  "Content-Digest written without its padding": sendingDigest(
    `sha-256=:${digest("sha256").replace(/=+$/, "")}:`,
  ),
  "the method in lower case and a line feed at the end": {
    base: (b) => `${line('"@method"', (v) => v.toLowerCase())(b)}\n`,
  },
  "the SHA-256 of a base with CR LF": { base: (b) => sha("sha256", b.replaceAll("\n", "\r\n")) },
  "a private key that nobody knows": { plan: { key: strangerKey } },
  "a base in words of its own": { base: (b) => `please pay\n${b}` },
  "three things at once": {
    base: (b) =>
      `${sha("sha256", line('"@method"', (v) => v.toLowerCase())(b))
        .toString("hex")
        .toUpperCase()}\n`,
  },
};
