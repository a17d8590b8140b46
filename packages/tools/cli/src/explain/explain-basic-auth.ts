import { fieldLines, type HeaderLines } from "@countersign/core/internal";
import { verifyBasicAuth, type BasicAuthCredential } from "@countersign/webhook-basic-auth";
import { explanation, refusalOf, verifies, type Explanation, type Remedy } from "./explanation.ts";
import { remedy, type Told } from "./remedies.ts";
import { decoded } from "./target-variants.ts";

/**
 * Says which part of basic authentication (RFC 7617) is wrong. Shows no received or expected text: it names credentials by position, from
 * 1, and compares with at most 32. Rejects with a TypeError on bad credentials.
 */
export async function explainBasicAuth(
  request: HeaderLines,
  credentials: readonly BasicAuthCredential[],
): Promise<Explanation> {
  const lines = fieldLines(request, "authorization");
  const code = refusalOf(() => verifyBasicAuth(lines[0], credentials));
  if (lines.length > 1) {
    return explanation(remedy("basic-repeated", { count: lines.length }), "credentials-malformed");
  }
  if (code === undefined) return verifies("The username and password are accepted.");
  return explanation(remedyOfLine(lines[0], credentials.slice(0, maxCredentials)), code);
}

const maxCredentials = 32;
const maxLine = 8192;
const schemes = ["bearer", "digest", "token", "apikey", "hmac", "signature"];

function remedyOfLine(line: string | undefined, credentials: readonly BasicAuthCredential[]): Remedy {
  if (line === undefined) return remedy("basic-missing");
  const words = line
    .slice(0, maxLine)
    .trim()
    .split(/[ \t]+/);
  const [scheme = "", ...rest] = words;
  const token = rest.join(" ");
  if (scheme.toLowerCase() === "basic") {
    if (token.includes(":")) return remedy("basic-not-encoded");
    return remedyOfToken(token, credentials) ?? remedyOfParts(textOf(token), credentials);
  }
  if (token === "" && remedyOfToken(scheme, credentials) !== undefined) return remedy("basic-scheme-missing");
  const glued = /^basic[:=]?(.+)$/i.exec(scheme + token)?.[1];
  if (glued !== undefined && remedyOfToken(glued, credentials) !== undefined)
    return remedy("basic-scheme-form");
  const by = schemes.find((each) => each === scheme.toLowerCase()) ?? "another one";
  return remedy("basic-scheme", { by });
}

function textOf(token: string): string {
  return Buffer.from(token, "base64").toString("utf8");
}

const readings: readonly (readonly [what: Told, read: (token: string) => string])[] = [
  ["basic-token-form", textOf],
  ["basic-latin1", (token) => Buffer.from(token, "base64").toString("latin1")],
  ["basic-base64-twice", (token) => textOf(textOf(token))],
  ["basic-url-encoded", (token) => decoded(textOf(token))],
  ["basic-white-space", (token) => textOf(token).replaceAll(/\s*(^|:|$)\s*/g, "$1")],
  ["basic-exchanged", (token) => textOf(token).replace(/^([^:]*):(.*)$/s, "$2:$1")],
];

function remedyOfToken(token: string, credentials: readonly BasicAuthCredential[]): Remedy | undefined {
  const known = new Set(credentials.map(({ username, password }) => `${username}:${password}`));
  const found = readings.find(([, read]) => known.has(read(token)));
  return found && remedy(found[0]);
}

const plain = (name: string): string => name.trim().toLowerCase();

function remedyOfParts(text: string, credentials: readonly BasicAuthCredential[]): Remedy {
  const colon = text.indexOf(":");
  if (colon === -1) return remedy("basic-form");
  const [username, password] = [text.slice(0, colon), text.slice(colon + 1)];
  if (username === "" || password === "") {
    return remedy("basic-part-missing", { empty: username === "" ? "username" : "password" });
  }
  const numberOf = (of: (credential: BasicAuthCredential) => boolean): number =>
    credentials.findIndex(of) + 1;
  const ofUser = numberOf((each) => each.username === username);
  if (ofUser > 0) return remedy("basic-password", { number: ofUser });
  const number = numberOf((each) => each.password === password);
  if (number === 0) return remedy("basic-both");
  const isLike = credentials.some((each) => plain(each.username) === plain(username));
  return remedy(isLike ? "basic-username-letter-case" : "basic-username", { number });
}
