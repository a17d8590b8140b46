import { GuardError, type GuardRequest } from "@countersign/guard";
import { isCanonical, parseUserPass, type UserPass } from "./user-pass.ts";

/** Why a request has no credential that counts. */
type RefusalReason = "missing" | "malformed" | "wrong";

/** Makes the GuardError with the code `credentials-<reason>`. */
export type Refuse = (reason: RefusalReason) => GuardError;

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
    new GuardError({ status, code: `credentials-${reason}`, message: messages[reason], headers });
}

/** The user-id and password of an Authorization line. Throws the refusal where it is not the Basic scheme with both. */
export function readUserPass(line: string, refuse: Refuse): UserPass {
  const userPass = parseUserPass(line);
  if (userPass === undefined) throw refuse("malformed");
  return userPass;
}

/** Throws the refusal for a token that is another spelling of its text, or whose text no credential can have. */
export function assertCanonical(userPass: UserPass, refuse: Refuse): void {
  if (!isCanonical(userPass)) throw refuse("malformed");
}

/**
 * The one Authorization line of a request. Throws the refusal where there is none, or more than one: `req.headers` would keep the
 * first and hide the second, and a proxy before us may have read that one.
 */
export function authorizationLine({ rawHeaders }: GuardRequest, refuse: Refuse): string {
  let line: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== 13 || name.toLowerCase() !== "authorization") continue;
    if (line !== undefined) throw refuse("malformed");
    line = rawHeaders[index + 1];
  }
  if (line === undefined) throw refuse("missing");
  return line;
}
