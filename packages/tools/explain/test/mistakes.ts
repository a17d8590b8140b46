import { constants, createPublicKey, sign, verify } from "node:crypto";
import { ed25519ph } from "@noble/curves/ed25519.js";
import type { ExplainSignatureOptions } from "../dist/index.js";
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

/** A mistake of a signer, and what the explanation says of it. */
export interface MistakeRow {
  readonly mistake: string;
  readonly made: Mistake;
  /** The stable identifier. */
  readonly what: string;
  /** The first sentence, whole. */
  readonly says: string;
  /** Beside those of `verifier`. */
  readonly options?: Partial<ExplainSignatureOptions>;
  /** False where the first sentence does not name the mistake: `says` is what comes instead. */
  readonly isNamed?: false;
}

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

export const mistakes: readonly MistakeRow[] = [
  {
    mistake: "the method in lower case",
    made: { base: line('"@method"', (v) => v.toLowerCase()) },
    what: "method-lower-case",
    says: 'Sign "@method" as "POST": the signature fits with "post", in lower case.',
  },
  {
    mistake: "another method",
    made: { base: line('"@method"', () => "PUT") },
    what: "method-other",
    says: 'Sign "@method" as "POST": the signature fits with "PUT", another method.',
  },
  {
    mistake: "the path with a prefix that a proxy takes off",
    made: { base: line('"@path"', (v) => `/payments${v}`) },
    what: "path-with-prefix",
    says: 'Sign "@path" as "/api/v1/transaction": the signature fits with "/payments/api/v1/transaction", with a prefix. Where a proxy takes this prefix off, set pathPrefix instead.',
  },
  {
    mistake: "the path with a prefix that the proxy tells",
    made: { base: line('"@path"', (v) => `/tenants/7${v}`), headers: ["X-Forwarded-Prefix", "/tenants/7"] },
    what: "path-with-prefix",
    says: 'Sign "@path" as "/api/v1/transaction": the signature fits with "/tenants/7/api/v1/transaction", with a prefix. Where a proxy takes this prefix off, set pathPrefix instead.',
  },
  {
    mistake: "the path without its prefix",
    made: { base: line('"@path"', () => "/transaction") },
    what: "path-without-prefix",
    says: 'Sign "@path" as "/api/v1/transaction": the signature fits with "/transaction", without the prefix before it.',
  },
  {
    mistake: "the path as a full URL",
    made: { base: line('"@path"', (v) => `https://platform.example${v}`) },
    what: "path-full-url",
    says: 'Sign "@path" as "/api/v1/transaction": the signature fits with "https://platform.example/api/v1/transaction", the full URL.',
  },
  {
    mistake: "the path decoded",
    made: { plan: { path: "/api/v1/trans%20action" }, base: line('"@path"', decodeURIComponent) },
    what: "path-decoded",
    says: 'Sign "@path" as "/api/v1/trans%20action": the signature fits with "/api/v1/trans action", decoded.',
  },
  {
    mistake: "the path with a slash at its end",
    made: { base: line('"@path"', (v) => `${v}/`) },
    what: "path-trailing-slash",
    says: 'Sign "@path" as "/api/v1/transaction": the signature fits with "/api/v1/transaction/", with a slash at its end.',
  },
  {
    mistake: "the path without its first slash",
    made: { base: line('"@path"', (v) => v.slice(1)) },
    what: "path-without-leading-slash",
    says: 'Sign "@path" as "/api/v1/transaction": the signature fits with "api/v1/transaction", without its first slash.',
  },
  {
    mistake: "the path with the query",
    made: { plan: queryPlan, base: line('"@path"', (v) => v + query) },
    what: "path-with-query",
    says: 'Sign "@path" as "/api/v1/transaction": the signature fits with "/api/v1/transaction?to=a%20b&from=x", with the query behind it.',
    options: withQuery,
  },
  {
    mistake: "the query without its question mark",
    made: { plan: queryPlan, base: line('"@query"', (v) => v.slice(1)) },
    what: "query-without-question-mark",
    says: 'Sign "@query" as "?to=a%20b&from=x": the signature fits with "to=a%20b&from=x", without the question mark.',
    options: withQuery,
  },
  {
    mistake: "the query left out",
    made: { plan: queryPlan, base: line('"@query"', () => "") },
    what: "query-left-out",
    says: 'Sign "@query" as "?to=a%20b&from=x": the signature fits with "", with no query.',
    options: withQuery,
  },
  {
    mistake: "the query re-ordered",
    made: { plan: queryPlan, base: line('"@query"', () => "?from=x&to=a%20b") },
    what: "query-reordered",
    says: 'Sign "@query" as "?to=a%20b&from=x": the signature fits with "?from=x&to=a%20b", its parameters in another order.',
    options: withQuery,
  },
  {
    mistake: "the query decoded",
    made: { plan: queryPlan, base: line('"@query"', decodeURIComponent) },
    what: "query-decoded",
    says: 'Sign "@query" as "?to=a%20b&from=x": the signature fits with "?to=a b&from=x", decoded.',
    options: withQuery,
  },
  {
    mistake: "a blank of the query as +",
    made: { plan: queryPlan, base: line('"@query"', (v) => v.replace("%20", "+")) },
    what: "query-encoded",
    says: 'Sign "@query" as "?to=a%20b&from=x": the signature fits with "?to=a+b&from=x", with + in place of %20.',
    options: withQuery,
  },
  {
    mistake: "the authority with a port",
    made: { plan: authorityPlan, headers: tenant, base: line('"@authority"', (v) => `${v}:443`) },
    what: "authority-with-port",
    says: 'Sign "@authority" as "platform.example": the signature fits with "platform.example:443", with a port.',
    options: withAuthority,
  },
  {
    mistake: "the host of the inner server in place of the authority",
    made: {
      plan: authorityPlan,
      headers: tenant,
      base: line('"@authority"', () => "10.0.0.7:8080"),
      sent: header("host", () => "10.0.0.7:8080"),
    },
    what: "authority-other-field",
    says: 'Sign "@authority" as "platform.example": the signature fits with "10.0.0.7:8080", the value of host.',
    options: withAuthority,
  },
  {
    mistake: "the scheme behind a proxy",
    made: { plan: authorityPlan, headers: tenant, base: line('"@scheme"', () => "http") },
    what: "scheme-other",
    says: 'Sign "@scheme" as "https": the signature fits with "http", the scheme of the other side of a proxy.',
    options: withAuthority,
  },
  {
    mistake: "the path alone as the target URI",
    made: { plan: authorityPlan, headers: tenant, base: line('"@target-uri"', () => samplePath) },
    what: "target-uri-path-alone",
    says: 'Sign "@target-uri" as "https://platform.example/api/v1/transaction": the signature fits with "/api/v1/transaction", the path and query alone.',
    options: withAuthority,
  },
  {
    mistake: "the request target with its method",
    made: { plan: authorityPlan, headers: tenant, base: line('"@request-target"', (v) => `post ${v}`) },
    what: "request-target-with-method",
    says: 'Sign "@request-target" as "/api/v1/transaction": the signature fits with "post /api/v1/transaction", with the method before it, as older drafts have it.',
    options: withAuthority,
  },
  {
    mistake: "a field in lower case",
    made: { plan: authorityPlan, headers: tenant, base: line('"x-tenant"', (v) => v.toLowerCase()) },
    what: "field-lower-case",
    says: 'Sign "x-tenant" as "Blue Whale": the signature fits with "blue whale", in lower case.',
    options: withAuthority,
  },
  {
    mistake: "a field in quotes",
    made: { plan: authorityPlan, headers: tenant, base: line('"x-tenant"', (v) => `"${v}"`) },
    what: "field-quoted",
    says: 'Sign "x-tenant" as "Blue Whale": the signature fits with "\\"Blue Whale\\"", in quotes.',
    options: withAuthority,
  },
  {
    mistake: "content-type without its charset",
    made: {
      plan: { contentType: "application/json; charset=utf-8" },
      base: line('"content-type"', () => "application/json"),
    },
    what: "content-type-without-parameters",
    says: 'Sign "content-type" as "application/json; charset=utf-8": the signature fits with "application/json", without the parameters that are sent.',
  },
  {
    mistake: "content-type with a charset that the client adds later",
    made: { base: line('"content-type"', (v) => `${v}; charset=utf-8`) },
    what: "content-type-with-charset",
    says: 'Sign "content-type" as "application/json": the signature fits with "application/json; charset=utf-8", with a charset that is not sent.',
  },
  {
    mistake: "content-type with a charset spelled otherwise",
    made: {
      plan: { contentType: "application/json; charset=utf-8" },
      base: line('"content-type"', () => "application/json;charset=UTF-8"),
    },
    what: "content-type-charset-spelling",
    says: 'Sign "content-type" as "application/json; charset=utf-8": the signature fits with "application/json;charset=UTF-8", with the charset spelled otherwise.',
  },
  {
    mistake: "content-digest of the JSON before it is serialised again",
    made: {
      base: line(
        '"content-digest"',
        () => `sha-256=:${sha("sha256", JSON.stringify(JSON.parse(body), null, 2)).toString("base64")}:`,
      ),
    },
    what: "content-digest-of-other-body",
    says: 'Sign "content-digest" as "sha-256=:HQGwO+QFdsmI9MjA27xJ2QmKL2KGcXTv5zwpemNGBRI=:": the signature fits with "sha-256=:OB5m1wtoDWh+prfBMKOC+Ag+olNwoeaASNkPDg2uFZc=:", the digest of the JSON serialised again, indented by two spaces.',
  },
  {
    mistake: "content-digest without its name",
    made: { base: line('"content-digest"', () => sha("sha256", body).toString("base64")) },
    what: "content-digest-form",
    says: 'Sign "content-digest" as "sha-256=:HQGwO+QFdsmI9MjA27xJ2QmKL2KGcXTv5zwpemNGBRI=:": the signature fits with "HQGwO+QFdsmI9MjA27xJ2QmKL2KGcXTv5zwpemNGBRI=", the base64 text alone.',
  },
  {
    mistake: "a line feed at the end of the base",
    made: { base: (b) => `${b}\n` },
    what: "base-line-feed-at-end",
    says: 'End the signature base with the line "@signature-params", without a line feed behind it.',
  },
  {
    mistake: "no blank after the colons",
    made: { base: (b) => b.replaceAll('": ', '":') },
    what: "base-no-blank-after-colon",
    says: "Put a colon and one blank behind each component identifier of the signature base: the signature fits with no blank.",
  },
  {
    mistake: "CR LF between the lines",
    made: { base: (b) => b.replaceAll("\n", "\r\n") },
    what: "base-crlf",
    says: "Separate the lines of the signature base by a single LF: the signature fits with CR LF between them.",
  },
  {
    mistake: "the lines without anything between them",
    made: { base: (b) => b.replaceAll("\n", "") },
    what: "base-line-separator",
    says: "Separate the lines of the signature base by a single LF: the signature fits with nothing between them.",
  },
  {
    mistake: "components of the base without quotes",
    made: { base: (b) => b.replaceAll(/^"([^"]*)"/gm, "$1") },
    what: "identifiers-unquoted",
    says: 'Write each component identifier of the signature base in lower case and double quotes, such as "@method": the signature fits with them without quotes.',
  },
  {
    mistake: "components of the base in the case of the headers",
    made: {
      base: (b) =>
        b.replace('"content-type":', '"Content-Type":').replace('"content-digest":', '"Content-Digest":'),
    },
    what: "identifiers-letter-case",
    says: 'Write each component identifier of the signature base in lower case and double quotes, such as "@method": the signature fits with those of the components in the letter case of the header fields.',
  },
  {
    mistake: "components of the base without @",
    made: { base: (b) => b.replaceAll(/^"@/gm, '"') },
    what: "identifiers-without-at",
    says: 'Write each component identifier of the signature base in lower case and double quotes, such as "@method": the signature fits with them without the @.',
  },
  {
    mistake: "no line @signature-params",
    made: { base: (b) => b.slice(0, b.lastIndexOf("\n")) },
    what: "params-line-missing",
    says: 'End the signature base with the line "@signature-params": the signature fits without it.',
  },
  {
    mistake: "the line @signature-params first",
    made: { base: (b) => [b.split("\n").at(-1), ...b.split("\n").slice(0, -1)].join("\n") },
    what: "params-line-first",
    says: 'Put the line "@signature-params" last in the signature base: the signature fits with it first.',
  },
  {
    mistake: "a component named and not signed",
    made: { base: (b) => b.replace(/"content-type".*\n/, "") },
    what: "base-component-missing",
    says: 'Put the line "content-type" into the signature base: the signature fits without it, though Signature-Input names it.',
  },
  {
    mistake: "a component signed and not named",
    made: { base: (b) => b.replace('"content-type"', '"@authority": platform.example\n"content-type"') },
    what: "base-component-additional",
    says: 'Name "@authority" in Signature-Input, or leave it out of the signature base: the signature fits with a line of it that Signature-Input does not name.',
  },
  {
    mistake: "the components in another order",
    made: { base: (b) => [2, 3, 0, 1, 4].map((index) => b.split("\n")[index]).join("\n") },
    what: "base-component-order",
    says: 'Put the lines of the signature base into the order of Signature-Input: the signature fits with "content-type", "content-digest", "@method", "@path".',
  },
  {
    mistake: "the parameters sorted",
    made: { base: params(sortedParameters) },
    what: "params-order",
    says: 'Sign the parameters of "@signature-params" in the order of Signature-Input: the signature fits with alg, created, expires, keyid, nonce.',
  },
  {
    mistake: "the parameters without quotes",
    made: { base: params((v) => v.replaceAll(/="([^"]*)"/g, "=$1")) },
    what: "params-unquoted",
    says: 'Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with no quotes around the parameters.',
  },
  {
    mistake: "keyId in place of keyid",
    made: { base: params((v) => v.replace("keyid", "keyId")) },
    what: "params-name",
    says: 'Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with keyId in place of keyid.',
  },
  {
    mistake: "blanks behind the semicolons",
    made: { base: params((v) => v.replaceAll(";", "; ")) },
    what: "params-spacing",
    says: 'Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with a blank behind each semicolon.',
  },
  {
    mistake: "the label before the parameters",
    made: { base: params((v) => `sig1=${v}`) },
    what: "params-with-label",
    says: 'Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with the label "sig1" before it.',
  },
  {
    mistake: "commas between the components of @signature-params",
    made: { base: params((v) => v.replaceAll('" "', '", "')) },
    what: "params-list-commas",
    says: 'Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with commas between the components.',
  },
  {
    mistake: "a parameter not signed",
    made: { base: params((v) => v.replace(';alg="ed25519"', "")) },
    what: "params-missing-parameter",
    says: 'Sign all parameters of Signature-Input in the line "@signature-params": the signature fits without alg.',
  },
  {
    mistake: "created taken twice, a second apart",
    made: { base: params((v) => v.replace(`created=${now}`, `created=${now - 1}`)) },
    what: "params-time-differs",
    says: "Take created and expires once, and sign the numbers that Signature-Input has: the signature fits with created 1 s earlier.",
  },
  {
    mistake: "created signed in milliseconds",
    made: { base: params((v) => v.replace(`created=${now}`, `created=${now}000`)) },
    what: "params-time-milliseconds",
    says: "Take created and expires once, and sign the numbers that Signature-Input has: the signature fits with milliseconds.",
  },
  {
    mistake: "the nonce signed in base64",
    made: {
      base: params((v) =>
        v.replace(/nonce="([^"]*)"/, (_, n: string) => `nonce="${Buffer.from(n).toString("base64")}"`),
      ),
    },
    what: "params-nonce-form",
    says: 'Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with the nonce in base64.',
  },
  {
    mistake: "the list of components alone",
    made: { base: params((v) => v.slice(0, v.indexOf(")") + 1)) },
    what: "params-list-alone",
    says: 'Sign the line "@signature-params" as Signature-Input has it behind the label: the signature fits with the list of components alone.',
  },
  {
    mistake: "the SHA-256 of the base signed",
    made: { base: (b) => sha("sha256", b) },
    what: "base-prehashed-sha256",
    says: "Sign the signature base itself, all of it, since Ed25519 takes no digest: the signature fits its SHA-256 digest.",
  },
  {
    mistake: "the SHA-512 of the base signed",
    made: { base: (b) => sha("sha512", b) },
    what: "base-prehashed-sha512",
    says: "Sign the signature base itself, all of it, since Ed25519 takes no digest: the signature fits its SHA-512 digest.",
  },
  {
    mistake: "the SHA-256 of the base in hex signed",
    made: { base: (b) => sha("sha256", b).toString("hex") },
    what: "base-prehashed-sha256",
    says: "Sign the signature base itself, all of it, since Ed25519 takes no digest: the signature fits its SHA-256 digest in hex.",
  },
  {
    mistake: "the base in base64 signed",
    made: { base: (b) => Buffer.from(b).toString("base64") },
    what: "base-encoded",
    says: "Sign the ASCII bytes of the signature base: the signature fits the base in base64.",
  },
  {
    mistake: "Ed25519ph in place of Ed25519",
    made: { sign: (bytes) => ed25519ph.sign(bytes, seed) },
    what: "algorithm-other",
    says: "Sign by ed25519, which the key is for: the signature fits by Ed25519ph, which signs a digest.",
  },
  {
    mistake: "the base hashed before ECDSA hashes it",
    made: { plan: ecPlan, base: (b) => sha("sha256", b), sign: (bytes) => sign("sha256", bytes, p1363) },
    what: "base-hashed-twice-sha256",
    says: "Sign the signature base itself: ecdsa-p256-sha256 hashes it once more, and the signature fits its SHA-256 digest.",
    options: ec,
  },
  {
    mistake: "an ECDSA signature in DER",
    made: { plan: ecPlan, sign: (bytes) => sign("sha256", bytes, ecKey) },
    what: "signature-der",
    says: "Put the bytes of the signature into Signature, in base64 between colons: they are there in DER, not as r and s.",
    options: ec,
  },
  {
    mistake: "ECDSA by another hash",
    made: { plan: ecPlan, sign: (bytes) => sign("sha512", bytes, p1363) },
    what: "algorithm-other",
    says: "Sign by ecdsa-p256-sha256, which the key is for: the signature fits by ECDSA with sha512.",
    options: ec,
  },
  {
    mistake: "RSA by another padding",
    made: { plan: rsaPlan, sign: (bytes) => sign("sha256", bytes, rsaKey) },
    what: "algorithm-other",
    says: "Sign by rsa-pss-sha512, which the key is for: the signature fits by RSASSA-PKCS1-v1_5 with sha256.",
    options: rsa,
  },
  {
    mistake: "the body alone signed",
    made: { base: () => body },
    what: "signed-body",
    says: 'Sign the signature base of RFC 9421 section 2.5, one line for each component and "@signature-params" last: the signature fits the body alone.',
  },
  {
    mistake: "the digest of the body alone signed",
    made: { base: () => sha("sha256", body) },
    what: "signed-digest",
    says: 'Sign the signature base of RFC 9421 section 2.5, one line for each component and "@signature-params" last: the signature fits the digest of the body alone.',
  },
  {
    mistake: "the signing string of draft-cavage signed",
    made: {
      base: (b) =>
        `(request-target): post ${samplePath}\nhost: platform.example\n${b.split("\n").slice(2, 4).join("\n").replaceAll('"', "")}`,
    },
    what: "signed-cavage-base",
    says: 'Sign the signature base of RFC 9421 section 2.5, one line for each component and "@signature-params" last: the signature fits the signing string of the older draft-cavage-http-signatures.',
  },
  {
    mistake: "the values without their components",
    made: {
      base: (b) =>
        b
          .split("\n")
          .slice(0, 4)
          .map((text) => text.slice(text.indexOf(": ") + 2))
          .join("\n"),
    },
    what: "signed-values",
    says: 'Sign the signature base of RFC 9421 section 2.5, one line for each component and "@signature-params" last: the signature fits the values of the components in lines.',
  },
  {
    mistake: "the signature in hex",
    made: { write: (s) => s.toString("hex") },
    what: "signature-hex",
    says: "Write the signature of Signature in base64 between colons: it is there in hex.",
  },
  {
    mistake: "the signature in hex between colons",
    made: { write: (s) => `:${s.toString("hex")}:` },
    what: "signature-hex",
    says: "Put the bytes of the signature into Signature, in base64 between colons: they are there in hex, which was read as base64.",
  },
  {
    mistake: "the signature in base64url",
    made: { plan: { nonce: "with-both-signs-7" }, write: (s) => `:${s.toString("base64url")}==:` },
    what: "signature-base64url",
    says: "Write the signature of Signature in base64, with + and /: it is there in base64url.",
  },
  {
    mistake: "the signature without colons",
    made: { write: (s) => s.toString("base64") },
    what: "signature-without-colons",
    says: "Put the base64 of Signature between colons: sig1=:<base64>:.",
  },
  {
    mistake: "the signature in quotes",
    made: { write: (s) => `"${s.toString("base64")}"` },
    what: "signature-quoted",
    says: "Put the base64 of Signature between colons, sig1=:<base64>:, not in quotes.",
  },
  {
    mistake: "the signature without its padding",
    made: { write: (s) => `:${s.toString("base64").replace(/=+$/, "")}:` },
    what: "signature-without-padding",
    says: "Write the base64 of Signature with its padding, the = at its end.",
  },
  {
    mistake: "the signature in base64 twice",
    made: { write: (s) => `:${Buffer.from(s.toString("base64")).toString("base64")}:` },
    what: "signature-base64-twice",
    says: "Put the bytes of the signature into Signature, in base64 between colons: they are there in base64 once more.",
  },
  {
    mistake: "the signature with the message behind it",
    made: { sign: (bytes) => Buffer.concat([sign(null, bytes, serviceKey), bytes]) },
    what: "signature-with-message",
    says: "Put the bytes of the signature into Signature, in base64 between colons: they are there with the message behind them, as libsodium's crypto_sign gives them.",
  },
  {
    mistake: "another known key",
    made: { plan: { key: strangerKey } },
    what: "key-other",
    says: 'Name the key that signs: keyid is "test-key", and the signature fits the key "second-key".',
    options: twoKeys,
  },
  {
    mistake: "a keyid that is not known, the key is",
    made: { plan: { keyid: "production" } },
    what: "keyid-other-name",
    says: 'Send keyid="test-key": the signature fits that key, and none is known as "production".',
  },
  {
    mistake: "a keyid with a slip",
    made: { plan: { keyid: "Test_Key", key: strangerKey } },
    what: "keyid-spelling",
    says: 'Send keyid="test-key": no key is known as "Test_Key".',
  },
  {
    mistake: "alg of another spelling",
    made: { plan: { parameters: { alg: '"EdDSA"' } } },
    what: "alg-other",
    says: 'Send alg="ed25519", the algorithm of the key: Signature-Input has "EdDSA".',
  },
  {
    mistake: "alg without quotes",
    made: { plan: { parameters: { alg: "ed25519" } } },
    what: "alg-form",
    says: 'Send alg in Signature-Input as a text in double quotes, such as alg="ed25519": it is without quotes.',
  },
  {
    mistake: "other labels in the two fields",
    made: { sent: header("signature", (v) => v.replace("sig1", "sig2")) },
    what: "labels-differ",
    says: 'Give the signature the same label in both fields: it is "sig1" in Signature-Input and "sig2" in Signature.',
  },
  {
    mistake: "components of Signature-Input without quotes",
    made: {
      sent: header("signature-input", (v) =>
        v.replace(/\(.*\)/, "(@method @path content-type content-digest)"),
      ),
    },
    what: "signature-input-list-unquoted",
    says: 'Write each component of Signature-Input in double quotes, such as "@method".',
  },
  {
    mistake: "commas in Signature-Input",
    made: { sent: header("signature-input", (v) => v.replaceAll('" "', '", "')) },
    what: "signature-input-list-commas",
    says: "Separate the components of Signature-Input by blanks, without commas.",
  },
  {
    mistake: "Signature-Input without a label",
    made: { sent: header("signature-input", (v) => v.slice(5)) },
    what: "signature-input-without-label",
    says: "Begin Signature-Input with a label, sig1=(...), the one that Signature has.",
  },
  {
    mistake: "Signature-Input with keyId",
    made: { sent: header("signature-input", (v) => v.replace("keyid", "keyId")) },
    what: "signature-input-parameter-letter-case",
    says: "Write the names of the parameters of Signature-Input in lower case, keyid and not keyId.",
  },
  {
    mistake: "the fields of draft-cavage",
    made: {
      sent: (h) =>
        header(
          "signature",
          () => 'keyId="test-key",algorithm="hs2019",headers="date",signature="AAAA"',
        )(header("signature-input", () => undefined)(h)),
    },
    what: "signature-cavage",
    says: "Sign by RFC 9421, with the fields Signature-Input and Signature: the request has a signature of the older draft-cavage-http-signatures.",
  },
  {
    mistake: "Signature-Input under another name",
    made: { sent: (h) => h.map((text) => (text === "Signature-Input" ? "X-Signature-Input" : text)) },
    what: "signature-field-name",
    says: 'Send Signature-Input under that name: the request has "X-Signature-Input".',
  },
  {
    mistake: "no Signature",
    made: { sent: header("signature", () => undefined) },
    what: "signature-field-absent",
    says: "Send Signature too: the request has Signature-Input alone.",
  },
  {
    mistake: "created in milliseconds",
    made: { plan: { created: now * 1000 } },
    what: "created-milliseconds",
    says: "Send created in Signature-Input in seconds: 1700000000000 are milliseconds, write 1700000000.",
  },
  {
    mistake: "created in quotes",
    made: { plan: { parameters: { created: `"${now}"` } } },
    what: "created-form",
    says: "Send created in Signature-Input as Unix seconds, a whole number without quotes: it is in quotes.",
  },
  {
    mistake: "created in local time",
    made: { plan: { created: now + 7200 } },
    what: "created-time-zone",
    says: "Send created in Signature-Input as Unix seconds in UTC: it is 2 hours ahead of the verifier's clock, as a local time would be.",
  },
  {
    mistake: "a clock that is ahead",
    made: { plan: { created: now + 47 } },
    what: "created-in-future",
    says: "Set the signer's clock: created in Signature-Input is 47 s ahead of the verifier's clock.",
  },
  {
    mistake: "a signature that is sent again later",
    made: { plan: { created: now - 95 } },
    what: "signature-expired",
    says: "Sign each request anew right before it is sent, also when it is sent again: the signature expired 35 s ago by the verifier's clock.",
  },
  {
    mistake: "expires as a duration",
    made: { plan: { parameters: { expires: "60" } } },
    what: "expires-duration",
    says: "Send expires in Signature-Input as a point in time, created + 60 = 1700000060: it is a duration.",
  },
  {
    mistake: "a window that is too long",
    made: { plan: { lifetime: 300 } },
    what: "window-too-long",
    says: "Send an expires in Signature-Input at most 60 s behind created: it is 300 s behind.",
  },
  {
    mistake: "no nonce",
    made: { plan: { parameters: { nonce: undefined } } },
    what: "nonce-missing",
    says: "Send nonce in Signature-Input as a text in double quotes of 1 to 128 characters, another one each time: it is missing.",
  },
  {
    mistake: "a nonce that is a number",
    made: { plan: { parameters: { nonce: "17" } } },
    what: "nonce-form",
    says: "Send nonce in Signature-Input as a text in double quotes of 1 to 128 characters, another one each time: it is a number.",
  },
  {
    mistake: "a component of Signature-Input in upper case",
    made: {
      plan: {
        covered: [
          ['"@method"', "POST"],
          ['"@path"', samplePath],
          ['"Content-Type"', "application/json"],
        ],
      },
    },
    what: "component-letter-case",
    says: 'Write "content-type" in lower case in Signature-Input: it is there as "Content-Type".',
  },
  {
    mistake: "path in place of @path",
    made: {
      plan: {
        covered: [
          ['"@method"', "POST"],
          ['"path"', samplePath],
          ['"content-type"', "application/json"],
          ['"content-digest"', "x"],
        ],
      },
    },
    what: "component-spelling",
    says: 'Write "@path" in Signature-Input where "path" stands.',
  },
  {
    mistake: "content-digest not covered",
    made: {
      plan: {
        covered: [
          ['"@method"', "POST"],
          ['"@path"', samplePath],
          ['"content-type"', "application/json"],
        ],
      },
    },
    what: "component-required",
    says: 'Cover "content-digest" in Signature-Input: nothing signs it.',
  },
  {
    mistake: "@url in place of @target-uri",
    made: {
      plan: {
        covered: [
          ['"@method"', "POST"],
          ['"@target-url"', samplePath],
        ],
      },
    },
    what: "component-unknown",
    says: 'Name components in Signature-Input that RFC 9421 has: "@target-url" is none of them. Write "@target-uri".',
  },
  {
    mistake: "a signed field that is not sent",
    made: {
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
    what: "covered-field-missing",
    says: 'Send every field that Signature-Input names, unchanged by proxies: look at "date".',
  },
  {
    mistake: "a query that is not signed",
    made: { plan: { path: `${samplePath}?a=1` } },
    what: "query-not-covered",
    says: 'Cover "@query" in Signature-Input, or send the request without a query.',
  },
  {
    mistake: "Content-Digest of the JSON serialised again",
    made: { plan: digestPlan(JSON.stringify(JSON.parse(body), null, 2)) },
    what: "digest-of-body-re-serialised",
    says: "Compute Content-Digest over the bytes that are sent: it is the SHA-256 digest of the JSON serialised again, indented by two spaces.",
  },
  {
    mistake: "Content-Digest of the body with a line feed",
    made: { plan: digestPlan(`${body}\n`) },
    what: "digest-of-body-with-line-feed",
    says: "Compute Content-Digest over the bytes that are sent: it is the SHA-256 digest of the body with a line feed behind it.",
  },
  {
    mistake: "Content-Digest of the body in another encoding",
    made: { plan: digestPlan(Buffer.from(body, "latin1")) },
    what: "digest-of-body-latin1",
    says: "Compute Content-Digest over the bytes that are sent: it is the SHA-256 digest of the body in ISO 8859-1.",
  },
  {
    mistake: "Content-Digest of no body",
    made: { plan: digestPlan("") },
    what: "digest-of-empty-body",
    says: "Compute Content-Digest over the bytes that are sent: it is the SHA-256 digest of an empty body.",
  },
  {
    mistake: "Content-Digest in hex",
    made: { plan: { contentDigest: `sha-256=:${sha("sha256", body).toString("hex")}:` } },
    what: "digest-hex",
    says: "Write the digest of Content-Digest in base64 between two colons, sha-256=:<base64>:, since it is there in hex.",
  },
  {
    mistake: "Content-Digest without colons",
    made: { plan: { contentDigest: `sha-256=${sha("sha256", body).toString("base64")}` } },
    what: "digest-form",
    says: "Write the digest of Content-Digest in base64 between two colons, sha-256=:<base64>:, since it is there without the colons.",
  },
  {
    mistake: "Content-Digest by SHA-1 under the name of SHA-256",
    made: { plan: { contentDigest: `sha-256=:${sha("sha1", body).toString("base64")}:` } },
    what: "digest-algorithm-name",
    says: "Name the algorithm of Content-Digest that was used: the digest is one by SHA-1.",
  },
  {
    mistake: "Content-Digest by SHA-1",
    made: { plan: { contentDigest: `sha=:${sha("sha1", body).toString("base64")}:` } },
    what: "digest-algorithm",
    says: "Send a Content-Digest by sha-256 or sha-512: no other algorithm is taken.",
  },
  {
    mistake: "Content-Digest with SHA256 for sha-256",
    made: { plan: { contentDigest: `SHA256=:${sha("sha256", body).toString("base64")}:` } },
    what: "digest-algorithm-spelling",
    says: "Write the algorithm of Content-Digest as sha-256 or sha-512, in lower case and with its hyphen.",
  },
  {
    mistake: "the signatures of two labels exchanged",
    made: { sent: twoLabels },
    what: "label-other",
    says: 'Give the members of Signature-Input and Signature the labels that belong together: what Signature has under "sig2" fits "sig1" of Signature-Input.',
    options: { label: "sig1" },
  },
  {
    mistake: "a label that is not looked at",
    made: {},
    what: "label-not-looked-at",
    says: 'Give the signature the label "payout", the only one that is looked at: it has "sig1".',
    options: { label: "payout" },
  },
  {
    mistake: "the body of the digest re-encoded before it is signed",
    made: {
      base: line(
        '"content-digest"',
        () => `sha-256=:${sha("sha256", Buffer.from(body, "latin1")).toString("base64")}:`,
      ),
    },
    what: "content-digest-of-other-body",
    says: 'Sign "content-digest" as "sha-256=:HQGwO+QFdsmI9MjA27xJ2QmKL2KGcXTv5zwpemNGBRI=:": the signature fits with "sha-256=:WSjGk/tRPtPZ63Bo4zWEI/XXlF4wtoSDKgM5RVN11SI=:", the digest of the body in ISO 8859-1.',
  },
  {
    mistake: "single quotes in Signature-Input",
    made: { sent: header("signature-input", (v) => v.replaceAll('"', "'")) },
    what: "signature-input-single-quotes",
    says: "Write the texts of Signature-Input in double quotes, not in single ones.",
  },
  {
    mistake: "escaped quotes in Signature-Input",
    made: { sent: header("signature-input", (v) => v.replaceAll('"', '\\"')) },
    what: "signature-input-escaped-quotes",
    says: 'Write the quotes of Signature-Input as " alone, without a backslash before them.',
  },
  {
    mistake: "commas between the parameters of Signature-Input",
    made: { sent: header("signature-input", (v) => v.replaceAll(";", ", ")) },
    what: "signature-input-separator",
    says: "Separate the parameters of Signature-Input by semicolons, not by commas.",
  },
  {
    mistake: "created as a date",
    made: { plan: { parameters: { created: "2023-11-14T22:13:20Z" } } },
    what: "signature-input-created-date",
    says: "Write created and expires in Signature-Input as Unix seconds, not as a date.",
  },
  {
    mistake: "Signature without a label",
    made: { sent: header("signature", (v) => v.slice(5)) },
    what: "signature-without-label",
    says: "Begin Signature with the label of Signature-Input, and put its base64 between colons: sig1=:<base64>:.",
  },
  {
    mistake: "expires in milliseconds",
    made: { plan: { parameters: { expires: String((now + 60) * 1000) } } },
    what: "expires-milliseconds",
    says: "Send expires in Signature-Input in seconds: 1700000060000 are milliseconds, write 1700000060.",
  },
  {
    mistake: "algorithm in place of alg in Signature-Input",
    made: { plan: { parameters: { alg: undefined, algorithm: '"ed25519"' } } },
    what: "alg-other-name",
    says: 'Call the parameter alg in Signature-Input by that name: it is there as "algorithm".',
  },
  {
    mistake: "@signature-params in the list",
    made: {
      plan: {
        covered: [
          ['"@method"', "POST"],
          ['"@signature-params"', ""],
        ],
      },
    },
    what: "component-signature-params",
    says: 'Leave "@signature-params" out of the list of Signature-Input: it is signed without being named.',
  },
  {
    mistake: "a full URL as the request target",
    made: { received: { target: `https://platform.example${samplePath}` } },
    what: "target-invalid",
    says: "Send the request target as a path and query alone, without a full URL, dot segments, double slashes at its start, # or \\.",
  },
  {
    mistake: "a method override",
    made: { headers: ["X-HTTP-Method-Override", "DELETE"] },
    what: "method-override",
    says: "Send the request by its own method, without X-HTTP-Method-Override or its like.",
  },
  {
    mistake: "RSA: the base hashed before RSA hashes it",
    made: {
      plan: rsaPlan,
      base: (b) => sha("sha512", b),
      sign: (bytes) =>
        sign("sha512", bytes, { key: rsaKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 }),
    },
    what: "base-hashed-twice-sha512",
    says: "Sign the signature base itself: rsa-pss-sha512 hashes it once more, and the signature fits its SHA-512 digest.",
    options: rsa,
  },
  {
    mistake: "Content-Digest written without its padding",
    made: {
      plan: { contentDigest: `sha-256=:${sha("sha256", body).toString("base64").replace(/=+$/, "")}:` },
    },
    what: "digest-form",
    says: "Write the digest of Content-Digest in base64 between two colons, sha-256=:<base64>:, since it is there without the padding.",
  },
  {
    mistake: "the method in lower case and a line feed at the end",
    made: { base: (b) => `${line('"@method"', (v) => v.toLowerCase())(b)}\n` },
    what: "base-line-feed-at-end+method-lower-case",
    says: 'Two things: End the signature base with the line "@signature-params", without a line feed behind it. And: Sign "@method" as "POST": the signature fits with "post", in lower case.',
  },
  {
    mistake: "the SHA-256 of a base with CR LF",
    made: { base: (b) => sha("sha256", b.replaceAll("\n", "\r\n")) },
    what: "base-crlf+base-prehashed-sha256",
    says: "Two things: Separate the lines of the signature base by a single LF: the signature fits with CR LF between them. And: Sign the signature base itself, all of it, since Ed25519 takes no digest: the signature fits its SHA-256 digest.",
  },
  {
    mistake: "a private key that nobody knows",
    made: { plan: { key: strangerKey } },
    what: "signature-unexplained",
    says: 'Compare the signature base of the signer with the expected one: the signature fits no usual mistake under the key "test-key", so it is another private key, or another base.',
    isNamed: false,
  },
  {
    mistake: "a base in words of its own",
    made: { base: (b) => `please pay\n${b}` },
    what: "signature-unexplained",
    says: 'Compare the signature base of the signer with the expected one: the signature fits no usual mistake under the key "test-key", so it is another private key, or another base.',
    isNamed: false,
  },
  {
    mistake: "three things at once",
    made: {
      base: (b) =>
        `${sha("sha256", line('"@method"', (v) => v.toLowerCase())(b))
          .toString("hex")
          .toUpperCase()}\n`,
    },
    what: "signature-unexplained",
    says: 'Compare the signature base of the signer with the expected one: the signature fits no usual mistake under the key "test-key", so it is another private key, or another base.',
    isNamed: false,
  },
];
