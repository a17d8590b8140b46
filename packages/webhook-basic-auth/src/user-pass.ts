import { parse } from "basic-auth";

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

/** Reads the value of an Authorization field. Undefined where it is not the Basic scheme with a user-id and password. */
export function parseUserPass(fieldValue: string): UserPass | undefined {
  const parsed = parse(fieldValue);
  if (parsed === undefined) return undefined;
  const value = fieldValue.trimEnd();
  return {
    username: parsed.name,
    password: parsed.pass,
    token: value.slice(value.lastIndexOf(" ") + 1),
  };
}

/**
 * Whether the token is the one spelling of its text. basic-auth also takes base64url, missing padding and bytes that are no
 * UTF-8, so that several tokens would stand for one user-id and password.
 */
export function isCanonical({ username, password, token }: UserPass): boolean {
  return isUserPassText(username) && isUserPassText(password) && serializeToken(username, password) === token;
}
