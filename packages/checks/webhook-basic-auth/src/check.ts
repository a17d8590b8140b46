import { createRequestFact, GuardError, type RequestFact } from "@countersign/core";
import { inTime, type HeaderLines, type OptionOwner } from "@countersign/core/door";
import type { BasicAuthCode } from "./codes.ts";
import {
  assertCanonical,
  authorizationLine,
  createRefuse,
  readUserPass,
  type CredentialMatcher,
  type Refuse,
  type VerifiedCredential,
} from "./credentials.ts";
import {
  resolveOptions,
  type BasicAuthChallenge,
  type BasicAuthCredential,
  type VerifyAuthority,
  type WebhookBasicAuthOptions,
} from "./options.ts";

const usualScheme = "Basic ";
const verified: RequestFact<VerifiedCredential> = createRequestFact();

/** The credential that the last check of this very request admitted it by; undefined when none did. */
export function verifiedCredential(subject: object): VerifiedCredential | undefined {
  return verified.get(subject);
}

/**
 * Verifies the value of an Authorization field (RFC 7617) against `credentials`, in constant time over all of them. Throws a
 * GuardError with the option `status`, default 401: `credentials-missing`, `-malformed` or `-wrong`; a TypeError on a bad option.
 */
export function verifyBasicAuth(
  authorization: string | undefined,
  credentials: readonly BasicAuthCredential[],
  challenge: BasicAuthChallenge = {},
): VerifiedCredential {
  const { authority, realm, status } = resolveOptions({ ...challenge, credentials }, "verifyBasicAuth");
  if (typeof authority !== "function") throw new TypeError("verifyBasicAuth: credentials must be a list");
  const refuse = createRefuse(status, realm);
  if (authorization === undefined) throw refuse("missing");
  return matchCredential(authorization, authority, refuse);
}

/**
 * Makes the check of a request's credentials. `native` goes to the option `verify`, which is answered with 503 when it fails.
 * Rejects with a GuardError; throws an OptionError on a bad option: `owner` is who it says has it.
 */
export function basicAuthVerifier<Native>(
  options: WebhookBasicAuthOptions<Native>,
  owner: OptionOwner = "basicAuthVerifier",
): (request: HeaderLines, native: Native) => Promise<VerifiedCredential> {
  const { authority, realm, status } = resolveOptions(options, owner);
  const refuse = createRefuse(status, realm);
  return async (request, native) => {
    // A second check of the same request must not live on the verdict of the first.
    verified.delete(request);
    const line = authorizationLine(request, refuse);
    const credential =
      typeof authority === "function"
        ? matchCredential(line, authority, refuse)
        : await askApp(line, native, { authority, refuse });
    verified.set(request, credential);
    return credential;
  };
}

function matchCredential(line: string, match: CredentialMatcher, refuse: Refuse): VerifiedCredential {
  // A credential has one token. Behind the usual spelling of the scheme it is compared as it stands, without decoding.
  const usual = line.startsWith(usualScheme) ? match(line.slice(usualScheme.length)) : undefined;
  if (usual !== undefined) return usual;
  const userPass = readUserPass(line, refuse);
  const credential = match(userPass.token);
  if (credential !== undefined) return credential;
  // Only the log tells these two apart.
  assertCanonical(userPass, refuse);
  throw refuse("wrong");
}

interface Question<Native> {
  readonly authority: VerifyAuthority<Native>;
  readonly refuse: Refuse;
}

async function askApp<Native>(
  line: string,
  native: Native,
  { authority, refuse }: Question<Native>,
): Promise<VerifiedCredential> {
  const userPass = readUserPass(line, refuse);
  assertCanonical(userPass, refuse);
  const { verify, timeoutMs } = authority;
  const { username, password } = userPass;
  const late = (): Error => new Error(`verify did not answer within ${timeoutMs} ms`);
  let answer: unknown;
  try {
    answer = await inTime(verify(username, password, native), timeoutMs, late);
  } catch (error) {
    throw unavailable(error);
  }
  // Whatever the types say: a row, a count or "false" is no consent.
  if (answer !== true) throw refuse("wrong");
  return { username, index: undefined };
}

function unavailable(cause: unknown): GuardError<BasicAuthCode> {
  return new GuardError<BasicAuthCode>({
    status: 503,
    code: "credentials-unavailable",
    message: "verify gave no answer",
    headers: { "Retry-After": "5" },
    cause,
  });
}
