import { fieldLines, type HeaderLines } from "@countersign/core/door";
import { verifyBasicAuth } from "@countersign/webhook-basic-auth";
import { explanation, refusalOf, type Explanation, type Remedy } from "./explanation.ts";
import { missesOf, type Row } from "./near-miss.ts";
import { pace } from "./pace.ts";
import { search } from "./search.ts";
import { decoded } from "./target-variants.ts";

/** A username and password that are accepted. */
interface Credential {
  readonly username: string;
  readonly password: string;
}

/**
 * Says which part of basic authentication (RFC 7617) is wrong. Nothing of what was received or is expected is shown: credentials are
 * named by their position, from 1. At most 32 are looked at. Rejects with a TypeError on bad credentials.
 */
export async function explainBasicAuth(
  request: HeaderLines,
  credentials: readonly Credential[],
): Promise<Explanation> {
  const lines = fieldLines(request, "authorization");
  const code = refusalOf(() => verifyBasicAuth(lines[0], credentials));
  if (lines.length > 1) {
    const sentence = `Send one Authorization: the request has ${lines.length} of them.`;
    return explanation("basic-repeated", "credentials-malformed", sentence);
  }
  if (code === undefined)
    return explanation("verifies", undefined, "The username and password are accepted.");
  const known = credentials.slice(0, maxCredentials);
  const [what, sentence] = await pace.run(() => remedyOfLine(lines[0], known));
  return explanation(what, code, sentence);
}

const maxCredentials = 32;
const maxLine = 8192;

const schemes = ["bearer", "digest", "token", "apikey", "hmac", "signature"];

async function remedyOfLine(line: string | undefined, credentials: readonly Credential[]): Promise<Remedy> {
  if (line === undefined) {
    return ["basic-missing", "Send Authorization with the username and password: the request has none."];
  }
  const [scheme = "", ...rest] = line
    .slice(0, maxLine)
    .trim()
    .split(/[ \t]+/);
  const token = rest.join(" ");
  if (scheme.toLowerCase() === "basic") {
    if (token.includes(":")) {
      return [
        "basic-not-encoded",
        "Encode username and password of Authorization in base64: they stand there as plain text.",
      ];
    }
    return (await remedyOfToken(token, credentials)) ?? remedyOfParts(textOf(token), credentials);
  }
  if (token === "" && (await remedyOfToken(scheme, credentials)) !== undefined) {
    return [
      "basic-scheme-missing",
      "Begin Authorization with Basic and a blank: the base64 stands there alone.",
    ];
  }
  const glued = /^basic[:=]?(.+)$/i.exec(scheme + token)?.[1];
  if (glued !== undefined && (await remedyOfToken(glued, credentials)) !== undefined) {
    return [
      "basic-scheme-form",
      "Begin Authorization with Basic and one blank: something else stands between them.",
    ];
  }
  const by = schemes.find((each) => each === scheme.toLowerCase()) ?? "another one";
  return ["basic-scheme", `Send Authorization by the scheme Basic: it is by ${by}.`];
}

function textOf(token: string): string {
  return Buffer.from(token, "base64").toString("utf8");
}

const inAuthorization = "username and password of Authorization";

const readings: readonly Row<(token: string) => string>[] = [
  [
    "basic-latin1",
    `Encode ${inAuthorization} as UTF-8 before base64: they are in ISO 8859-1.`,
    [(token) => Buffer.from(token, "base64").toString("latin1")],
  ],
  [
    "basic-base64-twice",
    `Encode ${inAuthorization} in base64 once: they are encoded twice.`,
    [(token) => textOf(textOf(token))],
  ],
  ["basic-url-encoded", `Send ${inAuthorization} without URL encoding.`, [(token) => decoded(textOf(token))]],
  [
    "basic-white-space",
    `Send ${inAuthorization} without white space or a line end behind them.`,
    [(token) => textOf(token).replaceAll(/\s*(^|:|$)\s*/g, "$1")],
  ],
  [
    "basic-quoted",
    `Send ${inAuthorization} without quotes.`,
    [(token) => textOf(token).replaceAll(/["']/g, "")],
  ],
  [
    "basic-exchanged",
    "Send the username before the password in Authorization: they are exchanged.",
    [(token) => textOf(token).replace(/^([^:]*):(.*)$/s, "$2:$1")],
  ],
];

/** What is otherwise with a token that means one of the credentials; undefined where it means none. */
async function remedyOfToken(token: string, credentials: readonly Credential[]): Promise<Remedy | undefined> {
  const { found } = await search({
    drafts: [textOf(token)],
    misses: missesOf<string, (token: string) => string>(readings, {
      part: "token",
      says: (how) => how,
      put: (_text, read) => read(token),
    }),
    fits: (text) =>
      credentials.some(({ username, password }) => text.includes(":") && text === `${username}:${password}`),
    pace,
  });
  if (found === undefined) return undefined;
  const [miss] = found.misses;
  return miss === undefined
    ? [
        "basic-token-form",
        "Write the base64 of Authorization with its padding, with + and /, and over UTF-8.",
      ]
    : [miss.what, miss.says];
}

const plain = (name: string): string => name.trim().toLowerCase();

function remedyOfParts(text: string, credentials: readonly Credential[]): Remedy {
  const colon = text.indexOf(":");
  if (colon === -1) {
    return [
      "basic-form",
      "Send username, a colon and password in base64 in Authorization: there is no colon.",
    ];
  }
  const [username, password] = [text.slice(0, colon), text.slice(colon + 1)];
  if (username === "" || password === "") {
    const empty = username === "" ? "username" : "password";
    return ["basic-part-missing", `Send username and password in Authorization: the ${empty} is empty.`];
  }
  const place = (of: (credential: Credential) => boolean): number => credentials.findIndex(of) + 1;
  const ofUser = place((each) => each.username === username);
  if (ofUser > 0) {
    return [
      "basic-password",
      `Compare the passwords of both sides: the username is that of credential number ${ofUser}, the password is not.`,
    ];
  }
  const ofPassword = place((each) => each.password === password);
  if (ofPassword === 0) {
    return [
      "basic-both",
      "Compare the credentials of both sides: neither the username nor the password is one that is accepted.",
    ];
  }
  const isLike = place((each) => plain(each.username) === plain(username)) > 0;
  return [
    isLike ? "basic-username-letter-case" : "basic-username",
    `Compare the usernames of both sides: the password is that of credential number ${ofPassword}, the username is not${isLike ? ", by its letter case" : ""}.`,
  ];
}
