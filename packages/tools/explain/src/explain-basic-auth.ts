import { fieldLines, isGuardError, type HeaderLines } from "@countersign/core";
import { verifyBasicAuth } from "@countersign/webhook-basic-auth";
import { explanation, type Explanation } from "./explanation.ts";

/** A username and password that are accepted. */
interface Credential {
  readonly username: string;
  readonly password: string;
}

/**
 * Says which part of basic authentication (RFC 7617) is wrong. Nothing of what was received or is expected is shown: credentials are
 * named by their position, from 1. At most 32 are looked at. Throws a TypeError on bad credentials.
 */
export function explainBasicAuth(request: HeaderLines, credentials: readonly Credential[]): Explanation {
  const lines = fieldLines(request, "authorization");
  try {
    verifyBasicAuth(lines[0], credentials);
    if (lines.length <= 1)
      return explanation("verifies", undefined, "The username and password are accepted.");
  } catch (error) {
    if (!isGuardError(error)) throw error;
    if (lines.length <= 1) return explainLine(lines[0], credentials.slice(0, maxCredentials), error.code);
  }
  const code = "credentials-malformed";
  return explanation(
    "basic-repeated",
    code,
    `Send one Authorization: the request has ${lines.length} of them.`,
  );
}

const maxCredentials = 32;
const maxLine = 8192;

function explainLine(
  line: string | undefined,
  credentials: readonly Credential[],
  code: string,
): Explanation {
  if (line === undefined) {
    return explanation(
      "basic-missing",
      code,
      "Send Authorization with the username and password: the request has none.",
    );
  }
  const [scheme = "", ...rest] = line
    .slice(0, maxLine)
    .trim()
    .split(/[ \t]+/);
  const token = rest.join(" ");
  if (scheme.toLowerCase() !== "basic") return explainScheme(scheme, token, { credentials, code });
  if (token.includes(":")) {
    return explanation(
      "basic-not-encoded",
      code,
      "Encode username and password of Authorization in base64: they stand there as plain text.",
    );
  }
  const found = partsOf(token).find(({ username, password }) => isOf(credentials, username, password));
  if (found !== undefined) return explanation(found.what, code, found.sentence);
  return explainParts(Buffer.from(token, "base64").toString("utf8"), { credentials, code });
}

interface BasicContext {
  readonly credentials: readonly Credential[];
  readonly code: string;
}

function explainScheme(scheme: string, token: string, { credentials, code }: BasicContext): Explanation {
  const isKnown = (text: string): boolean =>
    partsOf(text).some(({ username, password }) => isOf(credentials, username, password));
  if (token === "" && isKnown(scheme)) {
    return explanation(
      "basic-scheme-missing",
      code,
      "Begin Authorization with Basic and a blank: the base64 stands there alone.",
    );
  }
  const glued = /^basic[:=]?(.+)$/i.exec(scheme + token)?.[1];
  if (glued !== undefined && isKnown(glued)) {
    return explanation(
      "basic-scheme-form",
      code,
      "Begin Authorization with Basic and one blank: something else stands between them.",
    );
  }
  const known = ["bearer", "digest", "token", "apikey", "hmac", "signature"].includes(scheme.toLowerCase());
  return explanation(
    "basic-scheme",
    code,
    `Send Authorization by the scheme Basic: it is by ${known ? scheme.toLowerCase() : "another one"}.`,
  );
}

interface Parts {
  readonly what: string;
  readonly sentence: string;
  readonly username: string;
  readonly password: string;
}

/** What a token can mean if its sender encoded it otherwise. */
function partsOf(token: string): readonly Parts[] {
  const utf8 = Buffer.from(token, "base64").toString("utf8");
  const rows: readonly (readonly [string, string, string])[] = [
    [
      "basic-token-form",
      "Write the base64 of Authorization with its padding, with + and /, and over UTF-8.",
      utf8,
    ],
    [
      "basic-latin1",
      "Encode username and password of Authorization as UTF-8 before base64: they are in ISO 8859-1.",
      Buffer.from(token, "base64").toString("latin1"),
    ],
    [
      "basic-base64-twice",
      "Encode username and password of Authorization in base64 once: they are encoded twice.",
      Buffer.from(utf8, "base64").toString("utf8"),
    ],
    ["basic-url-encoded", "Send username and password of Authorization without URL encoding.", decoded(utf8)],
    [
      "basic-white-space",
      "Send username and password of Authorization without white space or a line end behind them.",
      utf8
        .split(":")
        .map((part) => part.trim())
        .join(":"),
    ],
    [
      "basic-quoted",
      "Send username and password of Authorization without quotes.",
      utf8.replaceAll(/["']/g, ""),
    ],
    [
      "basic-exchanged",
      "Send the username before the password in Authorization: they are exchanged.",
      [utf8.slice(utf8.indexOf(":") + 1), utf8.slice(0, utf8.indexOf(":"))].join(":"),
    ],
  ];
  return rows.flatMap(([what, sentence, text]) => {
    const colon = text.indexOf(":");
    if (colon === -1) return [];
    return [{ what, sentence, username: text.slice(0, colon), password: text.slice(colon + 1) }];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isOf(credentials: readonly Credential[], username: string, password: string): boolean {
  return credentials.some((each) => each.username === username && each.password === password);
}

function explainParts(text: string, { credentials, code }: BasicContext): Explanation {
  const colon = text.indexOf(":");
  if (colon === -1) {
    return explanation(
      "basic-form",
      code,
      "Send username, a colon and password in base64 in Authorization: there is no colon.",
    );
  }
  const [username, password] = [text.slice(0, colon), text.slice(colon + 1)];
  if (username === "" || password === "") {
    return explanation(
      "basic-part-missing",
      code,
      `Send username and password in Authorization: the ${username === "" ? "username" : "password"} is empty.`,
    );
  }
  const place = (of: (credential: Credential) => boolean): number => credentials.findIndex(of) + 1;
  const ofUser = place((each) => each.username === username);
  const ofPassword = place((each) => each.password === password);
  if (ofUser > 0) {
    return explanation(
      "basic-password",
      code,
      `Compare the passwords of both sides: the username is that of credential number ${ofUser}, the password is not.`,
    );
  }
  if (ofPassword > 0) {
    const like = place((each) => each.username.trim().toLowerCase() === username.trim().toLowerCase());
    return explanation(
      like > 0 ? "basic-username-letter-case" : "basic-username",
      code,
      `Compare the usernames of both sides: the password is that of credential number ${ofPassword}, the username is not${like > 0 ? ", by its letter case" : ""}.`,
    );
  }
  return explanation(
    "basic-both",
    code,
    "Compare the credentials of both sides: neither the username nor the password is one that is accepted.",
  );
}
