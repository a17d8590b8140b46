import { fieldLines, type HeaderLines } from "@countersign/core/door";
import { verifyBasicAuth } from "@countersign/webhook-basic-auth";
import { explanation, refusalOf, verifies, type Explanation, type Remedy } from "./explanation.ts";
import { decoded } from "./target-variants.ts";

interface Credential {
  readonly username: string;
  readonly password: string;
}

/**
 * Says which part of basic authentication (RFC 7617) is wrong. It shows no received or expected text: credentials are named by their
 * position, from 1. Compares with at most 32. Rejects with a TypeError on bad credentials.
 */
export async function explainBasicAuth(
  request: HeaderLines,
  credentials: readonly Credential[],
): Promise<Explanation> {
  const lines = fieldLines(request, "authorization");
  const code = refusalOf(() => verifyBasicAuth(lines[0], credentials));
  if (lines.length > 1) {
    const sentence = `Send one Authorization: the request has ${lines.length} of them.`;
    return explanation(["basic-repeated", sentence], "credentials-malformed");
  }
  if (code === undefined) return verifies("The username and password are accepted.");
  return explanation(remedyOfLine(lines[0], credentials.slice(0, maxCredentials)), code);
}

const maxCredentials = 32;
const maxLine = 8192;
const schemes = ["bearer", "digest", "token", "apikey", "hmac", "signature"];

function remedyOfLine(line: string | undefined, credentials: readonly Credential[]): Remedy {
  if (line === undefined) return remedies.missing;
  const words = line
    .slice(0, maxLine)
    .trim()
    .split(/[ \t]+/);
  const [scheme = "", ...rest] = words;
  const token = rest.join(" ");
  if (scheme.toLowerCase() === "basic") {
    if (token.includes(":")) return remedies.notEncoded;
    return remedyOfToken(token, credentials) ?? remedyOfParts(textOf(token), credentials);
  }
  if (token === "" && remedyOfToken(scheme, credentials) !== undefined) return remedies.noScheme;
  const glued = /^basic[:=]?(.+)$/i.exec(scheme + token)?.[1];
  if (glued !== undefined && remedyOfToken(glued, credentials) !== undefined) return remedies.schemeForm;
  const by = schemes.find((each) => each === scheme.toLowerCase()) ?? "another one";
  return ["basic-scheme", `Send Authorization by the scheme Basic: it is by ${by}.`];
}

const both = "username and password";
const remedies = {
  missing: ["basic-missing", `Send Authorization with the ${both}: the request has none.`],
  notEncoded: [
    "basic-not-encoded",
    `Encode ${both} of Authorization in base64: they stand there as plain text.`,
  ],
  noScheme: [
    "basic-scheme-missing",
    "Begin Authorization with Basic and a blank: the base64 stands there alone.",
  ],
  schemeForm: [
    "basic-scheme-form",
    "Begin Authorization with Basic and one blank: something else stands between them.",
  ],
  noColon: [
    "basic-form",
    "Send username, a colon and password in base64 in Authorization: there is no colon.",
  ],
  neither: [
    "basic-both",
    "Compare the credentials of both sides: neither the username nor the password is one that is accepted.",
  ],
} as const;

function textOf(token: string): string {
  return Buffer.from(token, "base64").toString("utf8");
}

const readings: readonly (readonly [what: string, sentence: string, read: (token: string) => string])[] = [
  [
    "basic-token-form",
    "Write the base64 of Authorization with its padding, with + and /, and over UTF-8.",
    textOf,
  ],
  [
    "basic-latin1",
    `Encode ${both} of Authorization as UTF-8 before base64: they are in ISO 8859-1.`,
    (token) => Buffer.from(token, "base64").toString("latin1"),
  ],
  [
    "basic-base64-twice",
    `Encode ${both} of Authorization in base64 once: they are encoded twice.`,
    (token) => textOf(textOf(token)),
  ],
  [
    "basic-url-encoded",
    `Send ${both} of Authorization without URL encoding.`,
    (token) => decoded(textOf(token)),
  ],
  [
    "basic-white-space",
    `Send ${both} of Authorization without white space or a line end behind them.`,
    (token) => textOf(token).replaceAll(/\s*(^|:|$)\s*/g, "$1"),
  ],
  [
    "basic-quoted",
    `Send ${both} of Authorization without quotes.`,
    (token) => textOf(token).replaceAll(/["']/g, ""),
  ],
  [
    "basic-exchanged",
    "Send the username before the password in Authorization: they are exchanged.",
    (token) => textOf(token).replace(/^([^:]*):(.*)$/s, "$2:$1"),
  ],
];

/** How a token should be written that means one of the credentials; undefined if it means none. */
function remedyOfToken(token: string, credentials: readonly Credential[]): Remedy | undefined {
  const known = new Set(credentials.map(({ username, password }) => `${username}:${password}`));
  const found = readings.find(([, , read]) => known.has(read(token)));
  return found === undefined ? undefined : [found[0], found[1]];
}

const plain = (name: string): string => name.trim().toLowerCase();

function remedyOfParts(text: string, credentials: readonly Credential[]): Remedy {
  const colon = text.indexOf(":");
  if (colon === -1) return remedies.noColon;
  const [username, password] = [text.slice(0, colon), text.slice(colon + 1)];
  if (username === "" || password === "") {
    const empty = username === "" ? "username" : "password";
    return ["basic-part-missing", `Send username and password in Authorization: the ${empty} is empty.`];
  }
  const numberOf = (of: (credential: Credential) => boolean): number => credentials.findIndex(of) + 1;
  const ofUser = numberOf((each) => each.username === username);
  if (ofUser > 0) {
    const found = `the username is that of credential number ${ofUser}, the password is not`;
    return ["basic-password", `Compare the passwords of both sides: ${found}.`];
  }
  const ofPassword = numberOf((each) => each.password === password);
  if (ofPassword === 0) return remedies.neither;
  const found = `the password is that of credential number ${ofPassword}, the username is not`;
  return credentials.some((each) => plain(each.username) === plain(username))
    ? ["basic-username-letter-case", `Compare the usernames of both sides: ${found}, by its letter case.`]
    : ["basic-username", `Compare the usernames of both sides: ${found}.`];
}
