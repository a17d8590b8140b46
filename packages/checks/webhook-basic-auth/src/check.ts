import { timingSafeEqual } from "node:crypto";
import { createRequestFact, GuardError, type RequestFact } from "@countersign/core";
import {
  askApp,
  fieldLines,
  isCredentialText,
  unanswered,
  type HeaderLines,
  type OptionOwner,
} from "@countersign/core/internal";
import { parse } from "basic-auth";
import {
  resolveOptions,
  serializeToken,
  type BasicAuthChallenge,
  type BasicAuthCredential,
  type VerifyAuthority,
  type WebhookBasicAuthOptions,
} from "./options.ts";

export type BasicAuthCode =
  | "credentials-malformed"
  | "credentials-missing"
  | "credentials-unavailable"
  | "credentials-wrong";

export interface VerifiedCredential {
  readonly username: string;
  /** Its position in `credentials`, 0 for a single one; undefined where `verify` decided. */
  readonly index: number | undefined;
}

const verified: RequestFact<VerifiedCredential> = createRequestFact();

/** The credential by which the last check admitted this very request; undefined when none did. */
export function verifiedCredential(subject: object): VerifiedCredential | undefined {
  return verified.get(subject);
}

/** Checks Authorization (RFC 7617) in constant time. Throws a GuardError (`credentials-…`), 401 by default; a TypeError on a bad option. */
export function verifyBasicAuth(
  authorization: string | undefined,
  credentials: readonly BasicAuthCredential[],
  challenge: BasicAuthChallenge = {},
): VerifiedCredential {
  const { authority, realm, status } = resolveOptions({ ...challenge, credentials }, "verifyBasicAuth");
  if ("verify" in authority) throw new TypeError("verifyBasicAuth: credentials must be a list");
  const refuse = createRefuse(status, realm);
  if (authorization === undefined) throw refuse("missing");
  return matchCredential(authorization, compileCredentials(authority), refuse);
}

/** Makes the check; `verify` gets `native`, its failure is 503. Rejects with a GuardError. Throws an OptionError for `owner`. */
export function basicAuthVerifier<Native>(
  options: WebhookBasicAuthOptions<Native>,
  owner: OptionOwner = "basicAuthVerifier",
): (request: HeaderLines, native: Native) => Promise<VerifiedCredential> {
  const { authority, realm, status } = resolveOptions(options, owner);
  const refuse = createRefuse(status, realm);
  const match = "verify" in authority ? () => undefined : compileCredentials(authority);
  return async (request, native) => {
    // A second check of the same request must not live on the verdict of the first.
    verified.delete(request);
    const [line, ...others] = fieldLines(request, "authorization");
    // A proxy before us may have read the second line.
    if (others.length > 0) throw refuse("malformed");
    if (line === undefined) throw refuse("missing");
    const credential =
      "verify" in authority
        ? await askVerify(line, native, { authority, refuse })
        : matchCredential(line, match, refuse);
    verified.set(request, credential);
    return credential;
  };
}

/** Undefined for any other token. */
type CredentialMatcher = (token: string) => VerifiedCredential | undefined;

const leastLength = 128;

/** Compares every token over one length, the longest's or more: time tells neither where a wrong one differs nor which it resembles. */
function compileCredentials(credentials: readonly BasicAuthCredential[]): CredentialMatcher {
  const tokens = credentials.map(serializeToken);
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

// Padded with zeros, which no credential's token holds.
function writePadded(token: string, target: Buffer): Buffer {
  target.fill(0, target.write(token, "utf8"));
  return target;
}

const usualScheme = "Basic ";

function matchCredential(line: string, match: CredentialMatcher, refuse: Refuse): VerifiedCredential {
  // A credential has one token. After the usual spelling of the scheme it is compared as it stands, without decoding.
  const usual = line.startsWith(usualScheme) ? match(line.slice(usualScheme.length)) : undefined;
  if (usual !== undefined) return usual;
  const userPass = readUserPass(line, refuse);
  const credential = match(userPass.token);
  if (credential !== undefined) return credential;
  // Only the log tells these two apart.
  assertCanonical(userPass, refuse);
  throw refuse("wrong");
}

interface UserPass extends BasicAuthCredential {
  /** The base64 text as received. */
  readonly token: string;
}

/** Reads user-id and password (RFC 7617 section 2). Throws the refusal of any other scheme or form. */
function readUserPass(line: string, refuse: Refuse): UserPass {
  const parsed = parse(line);
  if (parsed === undefined) throw refuse("malformed");
  const value = line.trimEnd();
  return {
    username: parsed.name,
    password: parsed.pass,
    token: value.slice(value.lastIndexOf(" ") + 1),
  };
}

/** Refuses impossible text and second spellings: basic-auth also takes base64url, missing padding and bytes that are no UTF-8. */
function assertCanonical(userPass: UserPass, refuse: Refuse): void {
  const isText = isCredentialText(userPass.username) && isCredentialText(userPass.password);
  if (!isText || serializeToken(userPass) !== userPass.token) throw refuse("malformed");
}

async function askVerify<Native>(
  line: string,
  native: Native,
  { authority, refuse }: { readonly authority: VerifyAuthority<Native>; readonly refuse: Refuse },
): Promise<VerifiedCredential> {
  const userPass = readUserPass(line, refuse);
  assertCanonical(userPass, refuse);
  const { verify, timeoutMs } = authority;
  const { username, password } = userPass;
  const asked = { name: "verify", timeoutMs, failure: verifyUnanswered };
  const answer: unknown = await askApp(asked, () => verify(username, password, native));
  // Whatever the types say: a row, a count or "false" is no consent.
  if (answer !== true) throw refuse("wrong");
  return { username, index: undefined };
}

function verifyUnanswered(cause: unknown): GuardError<BasicAuthCode> {
  return new GuardError<BasicAuthCode>(unanswered("credentials-unavailable", "verify gave no answer", cause));
}

type RefusalReason = "missing" | "malformed" | "wrong";

type Refuse = (reason: RefusalReason) => GuardError<BasicAuthCode>;

const messages: Readonly<Record<RefusalReason, string>> = {
  missing: "the request has no Authorization field",
  malformed:
    "Authorization is not exactly one field of the Basic scheme with a user-id and password, in base64 over UTF-8",
  wrong: "the username and password are not those of an accepted credential",
};

/** A 401 carries the challenge that RFC 7617 section 2.1 describes. */
function createRefuse(status: number, realm: string): Refuse {
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
