import { timingSafeEqual } from "node:crypto";
import { GuardError } from "@countersign/core";
import { fieldLines, type HeaderLines } from "@countersign/core/door";
import { parse } from "basic-auth";
import type { BasicAuthCode } from "./codes.ts";

/** The credential that a request was admitted by. */
export interface VerifiedCredential {
  readonly username: string;
  /** Its position in `credentials`, 0 for a single one; undefined where `verify` decided. */
  readonly index: number | undefined;
}

/** Returns the credential whose token this is; undefined for any other. */
export type CredentialMatcher = (token: string) => VerifiedCredential | undefined;

/**
 * Compiles username and password of every credential into its token. The time of a comparison depends neither on where a wrong
 * token differs nor on which credential it resembles: all of them are compared over one length, the longest's or more.
 */
export function compileCredentials(
  credentials: readonly { readonly username: string; readonly password: string }[],
): CredentialMatcher {
  const tokens = credentials.map(({ username, password }) => serializeToken(username, password));
  const length = Math.max(leastLength, ...tokens.map((token) => token.length));
  const candidates = credentials.map(({ username }, index) => {
    const token = tokens[index] ?? "";
    return {
      expected: writePadded(token, Buffer.alloc(length)),
      length: token.length,
      credential: Object.freeze({ username, index }),
    };
  });
  const received = Buffer.alloc(length);
  return (token) => {
    writePadded(token, received);
    let match: (typeof candidates)[number] | undefined;
    for (const candidate of candidates) {
      if (timingSafeEqual(candidate.expected, received)) match = candidate;
    }
    // A longer one was cut off, or ends in zeros of its own, which Node's insecureHTTPParser lets pass.
    return match?.length === token.length ? match.credential : undefined;
  };
}

const leastLength = 128;

// Padded with zeros, which no credential's token holds.
function writePadded(token: string, target: Buffer): Buffer {
  target.fill(0, target.write(token, "utf8"));
  return target;
}

/** Why a request has no credential that counts. */
type RefusalReason = "missing" | "malformed" | "wrong";

/** Makes the GuardError with the code `credentials-<reason>`. */
export type Refuse = (reason: RefusalReason) => GuardError<BasicAuthCode>;

const messages: Readonly<Record<RefusalReason, string>> = {
  missing: "the request has no Authorization field",
  malformed:
    "Authorization is not exactly one field of the Basic scheme with a user-id and password, in base64 over UTF-8",
  wrong: "the username and password are not those of an accepted credential",
};

/** Compiles the refusals of one guard. A 401 carries the challenge that RFC 7617 section 2.1 describes. */
export function createRefuse(status: number, realm: string): Refuse {
  const headers =
    status === 401 ? { "WWW-Authenticate": `Basic realm="${realm}", charset="UTF-8"` } : undefined;
  return (reason) =>
    new GuardError<BasicAuthCode>({
      status,
      code: `credentials-${reason}`,
      message: messages[reason],
      headers,
    });
}

/**
 * The one Authorization line of a request. Throws the refusal where there is none, or more than one: a proxy before us may have
 * read the second.
 */
export function authorizationLine(request: HeaderLines, refuse: Refuse): string {
  const [line, ...others] = fieldLines(request, "authorization");
  if (others.length > 0) throw refuse("malformed");
  if (line === undefined) throw refuse("missing");
  return line;
}

/** What an Authorization field of the Basic scheme holds (RFC 7617 section 2). */
export interface UserPass {
  readonly username: string;
  readonly password: string;
  /** The base64 text as received. */
  readonly token: string;
}

// RFC 7617 section 2 forbids control characters; basic-auth takes no line terminator of any kind.
const forbidden = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u;

/** Whether `text` can be a user-id or password: not empty, no control character, encodable as UTF-8. */
export function isUserPassText(text: unknown): text is string {
  return typeof text === "string" && text !== "" && !forbidden.test(text);
}

/** Base64 with padding over UTF-8: the one spelling of a user-id and password that is taken. */
export function serializeToken(username: string, password: string): string {
  return Buffer.from(`${username}:${password}`, "utf8").toString("base64");
}

/** The user-id and password of an Authorization line. Throws the refusal where it is not the Basic scheme with both. */
export function readUserPass(line: string, refuse: Refuse): UserPass {
  const parsed = parse(line);
  if (parsed === undefined) throw refuse("malformed");
  const value = line.trimEnd();
  return {
    username: parsed.name,
    password: parsed.pass,
    token: value.slice(value.lastIndexOf(" ") + 1),
  };
}

/**
 * Throws the refusal for a token that is not the one spelling of its text, or whose text no credential can have. basic-auth also
 * takes base64url, missing padding and bytes that are no UTF-8, so that several tokens would stand for one user-id and password.
 */
export function assertCanonical({ username, password, token }: UserPass, refuse: Refuse): void {
  const isText = isUserPassText(username) && isUserPassText(password);
  if (!isText || serializeToken(username, password) !== token) throw refuse("malformed");
}
