import { constants, createPublicKey, sign, verify } from "node:crypto";
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
  params,
  pemOf,
  rsaKey,
  rsaPublic,
  samplePath,
  serviceKey,
  servicePublicPem,
  sha,
  strangerKey,
  type Mistake,
} from "./signed-with-mistake.ts";

const query = "?to=a%20b&from=x";
const queryPlan = {
  path: samplePath + query,
  covered: [
    ['"@method"', "POST"],
    ['"@path"', samplePath],
    ['"@query"', query],
    ['"content-type"', "application/json"],
  ] as const,
};
const withQuery = { requiredComponents: ["@method", "@path", "@query"], allowUnsignedBody: true };
const authorityPlan = {
  covered: [
    ['"@method"', "POST"],
    ['"@authority"', "platform.example"],
    ['"@path"', samplePath],
    ['"@scheme"', "https"],
    ['"@target-uri"', `https://platform.example${samplePath}`],
    ['"@request-target"', samplePath],
    ['"x-tenant"', "Blue Whale"],
  ] as const,
};
const withAuthority = {
  requiredComponents: ["@method", "@path"],
  allowUnsignedBody: true,
  origin: "https://platform.example",
};
const tenant = ["X-Tenant", "Blue Whale"];
const ec = { keys: { "test-key": pemOf(ecPublic) }, algorithms: ["ecdsa-p256-sha256"] as const };
const ecPlan = { parameters: { alg: '"ecdsa-p256-sha256"' } };
const rsa = {
  keys: { "test-key": { kty: "RSA", alg: "PS512", ...rsaPublic.export({ format: "jwk" }) } },
  algorithms: ["rsa-pss-sha512"] as const,
};
const rsaPlan = { parameters: { alg: '"rsa-pss-sha512"' } };
const strangerPem = pemOf(createPublicKey(strangerKey));
const twoKeys = { keys: { "test-key": servicePublicPem, "second-key": strangerPem } };
const p1363 = { key: ecKey, dsaEncoding: "ieee-p1363" } as const;
const seed = Buffer.from(serviceKey.export({ format: "jwk" }).d ?? "", "base64url");

/** A second signature beside the first one, each under the label of the other. */
function twoLabels(headers: readonly string[]): readonly string[] {
  const other = mistaken({ plan: { nonce: "another one" } }).rawHeaders;
  const valueOf = (lines: readonly string[], name: string): string =>
    (lines[lines.indexOf(name) + 1] ?? "").slice(5);
  const both = (name: string, [first, second]: readonly [string, string]): readonly string[] => [
    name,
    `sig1=${first}, sig2=${second}`,
  ];
  const rest = header("signature", () => undefined)(header("signature-input", () => undefined)(headers));
  return [
    ...rest,
    ...both("Signature-Input", [valueOf(headers, "Signature-Input"), valueOf(other, "Signature-Input")]),
    ...both("Signature", [valueOf(other, "Signature"), valueOf(headers, "Signature")]),
  ];
}

function sortedParameters(value: string): string {
  const end = value.indexOf(")") + 1;
  const parameters = value.slice(end + 1).split(";");
  parameters.sort();
  return `${value.slice(0, end)};${parameters.join(";")}`;
}

if (!verify(null, Buffer.from("a"), servicePublicPem, sign(null, Buffer.from("a"), serviceKey))) {
  throw new Error("the sample keys do not belong together");
}

/** What signers do; `mistakes.txt` says which identifier and which first sentence each is explained by. */
export const mistakes: Readonly<Record<string, Mistake>> = {
  "the method in lower case": { base: line('"@method"', (v) => v.toLowerCase()) },
  "another method": { base: line('"@method"', () => "PUT") },
  "the path with a prefix that a proxy takes off": { base: line('"@path"', (v) => `/payments${v}`) },
  "the path with a prefix that the proxy tells": {
    base: line('"@path"', (v) => `/tenants/7${v}`),
    headers: ["X-Forwarded-Prefix", "/tenants/7"],
  },
  "the path without its prefix": { base: line('"@path"', () => "/transaction") },
  "the path as a full URL": { base: line('"@path"', (v) => `https://platform.example${v}`) },
  "the path decoded": { plan: { path: "/api/v1/trans%20action" }, base: line('"@path"', decodeURIComponent) },
  "the path with a slash at its end": { base: line('"@path"', (v) => `${v}/`) },
  "the path without its first slash": { base: line('"@path"', (v) => v.slice(1)) },
  "the path with the query": { plan: queryPlan, base: line('"@path"', (v) => v + query), options: withQuery },
  "the query without its question mark": {
    plan: queryPlan,
    base: line('"@query"', (v) => v.slice(1)),
    options: withQuery,
  },
  "the query left out": { plan: queryPlan, base: line('"@query"', () => ""), options: withQuery },
  "the query re-ordered": {
    plan: queryPlan,
    base: line('"@query"', () => "?from=x&to=a%20b"),
    options: withQuery,
  },
  "the query decoded": { plan: queryPlan, base: line('"@query"', decodeURIComponent), options: withQuery },
  "a blank of the query as +": {
    plan: queryPlan,
    base: line('"@query"', (v) => v.replace("%20", "+")),
    options: withQuery,
  },
  "the authority with a port": {
    plan: authorityPlan,
    headers: tenant,
    base: line('"@authority"', (v) => `${v}:443`),
    options: withAuthority,
  },
  "the host of the inner server in place of the authority": {
    plan: authorityPlan,
    headers: tenant,
    base: line('"@authority"', () => "10.0.0.7:8080"),
    sent: header("host", () => "10.0.0.7:8080"),
    options: withAuthority,
  },
  "the scheme behind a proxy": {
    plan: authorityPlan,
    headers: tenant,
    base: line('"@scheme"', () => "http"),
    options: withAuthority,
  },
  "the path alone as the target URI": {
    plan: authorityPlan,
    headers: tenant,
    base: line('"@target-uri"', () => samplePath),
    options: withAuthority,
  },
  "the request target with its method": {
    plan: authorityPlan,
    headers: tenant,
    base: line('"@request-target"', (v) => `post ${v}`),
    options: withAuthority,
  },
  "a field in lower case": {
    plan: authorityPlan,
    headers: tenant,
    base: line('"x-tenant"', (v) => v.toLowerCase()),
    options: withAuthority,
  },
  "a field in quotes": {
    plan: authorityPlan,
    headers: tenant,
    base: line('"x-tenant"', (v) => `"${v}"`),
    options: withAuthority,
  },
  "content-type without its charset": {
    plan: { contentType: "application/json; charset=utf-8" },
    base: line('"content-type"', () => "application/json"),
  },
  "content-type with a charset that the client adds later": {
    base: line('"content-type"', (v) => `${v}; charset=utf-8`),
  },
  "content-type with a charset spelled otherwise": {
    plan: { contentType: "application/json; charset=utf-8" },
    base: line('"content-type"', () => "application/json;charset=UTF-8"),
  },
  "content-digest of the JSON before it is serialised again": {
    base: line(
      '"content-digest"',
      () => `sha-256=:${sha("sha256", JSON.stringify(JSON.parse(body), null, 2)).toString("base64")}:`,
    ),
  },
  "content-digest without its name": {
    base: line('"content-digest"', () => sha("sha256", body).toString("base64")),
  },
  "a line feed at the end of the base": { base: (b) => `${b}\n` },
  "no blank after the colons": { base: (b) => b.replaceAll('": ', '":') },
  "CR LF between the lines": { base: (b) => b.replaceAll("\n", "\r\n") },
  "the lines without anything between them": { base: (b) => b.replaceAll("\n", "") },
  "components of the base without quotes": { base: (b) => b.replaceAll(/^"([^"]*)"/gm, "$1") },
  "components of the base in the case of the headers": {
    base: (b) =>
      b.replace('"content-type":', '"Content-Type":').replace('"content-digest":', '"Content-Digest":'),
  },
  "components of the base without @": { base: (b) => b.replaceAll(/^"@/gm, '"') },
  "no line @signature-params": { base: (b) => b.slice(0, b.lastIndexOf("\n")) },
  "the line @signature-params first": {
    base: (b) => [b.split("\n").at(-1), ...b.split("\n").slice(0, -1)].join("\n"),
  },
  "a component named and not signed": { base: (b) => b.replace(/"content-type".*\n/, "") },
  "a component signed and not named": {
    base: (b) => b.replace('"content-type"', '"@authority": platform.example\n"content-type"'),
  },
  "the components in another order": {
    base: (b) => [2, 3, 0, 1, 4].map((index) => b.split("\n")[index]).join("\n"),
  },
  "the parameters sorted": { base: params(sortedParameters) },
  "the parameters without quotes": { base: params((v) => v.replaceAll(/="([^"]*)"/g, "=$1")) },
  "keyId in place of keyid": { base: params((v) => v.replace("keyid", "keyId")) },
  "blanks behind the semicolons": { base: params((v) => v.replaceAll(";", "; ")) },
  "the label before the parameters": { base: params((v) => `sig1=${v}`) },
  "commas between the components of @signature-params": { base: params((v) => v.replaceAll('" "', '", "')) },
  "a parameter not signed": { base: params((v) => v.replace(';alg="ed25519"', "")) },
  "created taken twice, a second apart": {
    base: params((v) => v.replace(`created=${now}`, `created=${now - 1}`)),
  },
  "created signed in milliseconds": { base: params((v) => v.replace(`created=${now}`, `created=${now}000`)) },
  "the nonce signed in base64": {
    base: params((v) =>
      v.replace(/nonce="([^"]*)"/, (_, n: string) => `nonce="${Buffer.from(n).toString("base64")}"`),
    ),
  },
  "the list of components alone": { base: params((v) => v.slice(0, v.indexOf(")") + 1)) },
  "the SHA-256 of the base signed": { base: (b) => sha("sha256", b) },
  "the SHA-512 of the base signed": { base: (b) => sha("sha512", b) },
  "the SHA-256 of the base in hex signed": { base: (b) => sha("sha256", b).toString("hex") },
  "the base in base64 signed": { base: (b) => Buffer.from(b).toString("base64") },
  "Ed25519ph in place of Ed25519": { sign: (bytes) => ed25519ph.sign(bytes, seed) },
  "the base hashed before ECDSA hashes it": {
    plan: ecPlan,
    base: (b) => sha("sha256", b),
    sign: (bytes) => sign("sha256", bytes, p1363),
    options: ec,
  },
  "an ECDSA signature in DER": { plan: ecPlan, sign: (bytes) => sign("sha256", bytes, ecKey), options: ec },
  "ECDSA by another hash": { plan: ecPlan, sign: (bytes) => sign("sha512", bytes, p1363), options: ec },
  "RSA by another padding": { plan: rsaPlan, sign: (bytes) => sign("sha256", bytes, rsaKey), options: rsa },
  "the body alone signed": { base: () => body },
  "the digest of the body alone signed": { base: () => sha("sha256", body) },
  "the signing string of draft-cavage signed": {
    base: (b) =>
      `(request-target): post ${samplePath}\nhost: platform.example\n${b.split("\n").slice(2, 4).join("\n").replaceAll('"', "")}`,
  },
  "the values without their components": {
    base: (b) =>
      b
        .split("\n")
        .slice(0, 4)
        .map((text) => text.slice(text.indexOf(": ") + 2))
        .join("\n"),
  },
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
  "alg of another spelling": { plan: { parameters: { alg: '"EdDSA"' } } },
  "alg without quotes": { plan: { parameters: { alg: "ed25519" } } },
  "other labels in the two fields": { sent: header("signature", (v) => v.replace("sig1", "sig2")) },
  "components of Signature-Input without quotes": {
    sent: header("signature-input", (v) =>
      v.replace(/\(.*\)/, "(@method @path content-type content-digest)"),
    ),
  },
  "commas in Signature-Input": { sent: header("signature-input", (v) => v.replaceAll('" "', '", "')) },
  "Signature-Input without a label": { sent: header("signature-input", (v) => v.slice(5)) },
  "Signature-Input with keyId": { sent: header("signature-input", (v) => v.replace("keyid", "keyId")) },
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
  "no Signature": { sent: header("signature", () => undefined) },
  "created in milliseconds": { plan: { created: now * 1000 } },
  "created in quotes": { plan: { parameters: { created: `"${now}"` } } },
  "created in local time": { plan: { created: now + 7200 } },
  "a clock that is ahead": { plan: { created: now + 47 } },
  "a signature that is sent again later": { plan: { created: now - 95 } },
  "expires as a duration": { plan: { parameters: { expires: "60" } } },
  "a window that is too long": { plan: { lifetime: 300 } },
  "no nonce": { plan: { parameters: { nonce: undefined } } },
  "a nonce that is a number": { plan: { parameters: { nonce: "17" } } },
  "a component of Signature-Input in upper case": {
    plan: {
      covered: [
        ['"@method"', "POST"],
        ['"@path"', samplePath],
        ['"Content-Type"', "application/json"],
      ],
    },
  },
  "path in place of @path": {
    plan: {
      covered: [
        ['"@method"', "POST"],
        ['"path"', samplePath],
        ['"content-type"', "application/json"],
        ['"content-digest"', "x"],
      ],
    },
  },
  "content-digest not covered": {
    plan: {
      covered: [
        ['"@method"', "POST"],
        ['"@path"', samplePath],
        ['"content-type"', "application/json"],
      ],
    },
  },
  "@url in place of @target-uri": {
    plan: {
      covered: [
        ['"@method"', "POST"],
        ['"@target-url"', samplePath],
      ],
    },
  },
  "a signed field that is not sent": {
    plan: {
      covered: [
        ['"@method"', "POST"],
        ['"@path"', samplePath],
        ['"content-type"', "application/json"],
        ['"content-digest"', "x"],
        ['"date"', "x"],
      ],
    },
  },
  "a query that is not signed": { plan: { path: `${samplePath}?a=1` } },
  "Content-Digest of the JSON serialised again": {
    plan: digestPlan(JSON.stringify(JSON.parse(body), null, 2)),
  },
  "Content-Digest of the body with a line feed": { plan: digestPlan(`${body}\n`) },
  "Content-Digest of the body in another encoding": { plan: digestPlan(Buffer.from(body, "latin1")) },
  "Content-Digest of no body": { plan: digestPlan("") },
  "Content-Digest in hex": { plan: { contentDigest: `sha-256=:${sha("sha256", body).toString("hex")}:` } },
  "Content-Digest without colons": {
    plan: { contentDigest: `sha-256=${sha("sha256", body).toString("base64")}` },
  },
  "Content-Digest by SHA-1 under the name of SHA-256": {
    plan: { contentDigest: `sha-256=:${sha("sha1", body).toString("base64")}:` },
  },
  "Content-Digest by SHA-1": { plan: { contentDigest: `sha=:${sha("sha1", body).toString("base64")}:` } },
  "Content-Digest with SHA256 for sha-256": {
    plan: { contentDigest: `SHA256=:${sha("sha256", body).toString("base64")}:` },
  },
  "the signatures of two labels exchanged": { sent: twoLabels, options: { label: "sig1" } },
  "a label that is not looked at": { options: { label: "payout" } },
  "the body of the digest re-encoded before it is signed": {
    base: line(
      '"content-digest"',
      () => `sha-256=:${sha("sha256", Buffer.from(body, "latin1")).toString("base64")}:`,
    ),
  },
  "single quotes in Signature-Input": { sent: header("signature-input", (v) => v.replaceAll('"', "'")) },
  "escaped quotes in Signature-Input": { sent: header("signature-input", (v) => v.replaceAll('"', '\\"')) },
  "commas between the parameters of Signature-Input": {
    sent: header("signature-input", (v) => v.replaceAll(";", ", ")),
  },
  "created as a date": { plan: { parameters: { created: "2023-11-14T22:13:20Z" } } },
  "Signature without a label": { sent: header("signature", (v) => v.slice(5)) },
  "expires in milliseconds": { plan: { parameters: { expires: String((now + 60) * 1000) } } },
  "algorithm in place of alg in Signature-Input": {
    plan: { parameters: { alg: undefined, algorithm: '"ed25519"' } },
  },
  "@signature-params in the list": {
    plan: {
      covered: [
        ['"@method"', "POST"],
        ['"@signature-params"', ""],
      ],
    },
  },
  "a full URL as the request target": { received: { target: `https://platform.example${samplePath}` } },
  "a method override": { headers: ["X-HTTP-Method-Override", "DELETE"] },
  "RSA: the base hashed before RSA hashes it": {
    plan: rsaPlan,
    base: (b) => sha("sha512", b),
    sign: (bytes) =>
      sign("sha512", bytes, { key: rsaKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 }),
    options: rsa,
  },
  "Content-Digest written without its padding": {
    plan: { contentDigest: `sha-256=:${sha("sha256", body).toString("base64").replace(/=+$/, "")}:` },
  },
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
