import {
  assertNoKeyClaimed,
  createRequestFact,
  guard,
  GuardError,
  type GuardRequest,
  isPromiseLike,
  type Middleware,
  type RequestFact,
  withDeadline,
} from "@countersign/guard";
import {
  assertCanonical,
  authorizationLine,
  createRefuse,
  readUserPass,
  type Refuse,
} from "./authorization.ts";
import type { CredentialMatcher, VerifiedCredential } from "./credentials.ts";
import { resolveOptions, type VerifyAuthority, type WebhookBasicAuthOptions } from "./options.ts";
import type { UserPass } from "./user-pass.ts";

declare global {
  namespace Express {
    interface WebhookVerification {
      /** The position of the credential that webhookBasicAuth matched; undefined where `verify` decided. */
      credentialIndex?: number | undefined;
    }
    interface Request {
      /** What the webhook guards matched. For display and retiring; to decide by it, use their functions. */
      webhook?: WebhookVerification | undefined;
    }
  }
}

const usualScheme = "Basic ";
const verified: RequestFact<VerifiedCredential> = createRequestFact();

/** The credential that the last webhookBasicAuth of this very request admitted it by; undefined when it did not. */
export function verifiedCredential(req: GuardRequest): VerifiedCredential | undefined {
  return verified.get(req);
}

/**
 * Admits requests with HTTP basic authentication (RFC 7617), compared in constant time over all credentials. Reads no body.
 * Refuses with 401 by default, with 503 when `verify` fails. Throws a TypeError when it is built with a bad option.
 */
export function webhookBasicAuth(options: WebhookBasicAuthOptions): Middleware {
  const { authority, realm, status } = resolveOptions(options);
  const refuse = createRefuse(status, realm);
  return guard("webhookBasicAuth", (req) => {
    assertNoKeyClaimed("webhookBasicAuth", req);
    // A second guard on the same request must not live on the verdict of the first.
    verified.delete(req);
    const line = authorizationLine(req, refuse);
    if (typeof authority !== "function") {
      return askApp(req, readUserPass(line, refuse), { authority, refuse });
    }
    admit(req, matchCredential(line, authority, refuse));
    return undefined;
  });
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

interface Question {
  readonly authority: VerifyAuthority;
  readonly refuse: Refuse;
}

function askApp(req: GuardRequest, userPass: UserPass, question: Question): undefined | Promise<void> {
  assertCanonical(userPass, question.refuse);
  let answer: unknown;
  try {
    answer = question.authority.verify(userPass.username, userPass.password, req);
  } catch (error) {
    throw unavailable(error);
  }
  if (isPromiseLike(answer)) return acceptLater(req, userPass, { ...question, answer });
  accept(req, userPass, { answer, refuse: question.refuse });
  return undefined;
}

async function acceptLater(
  req: GuardRequest,
  userPass: UserPass,
  { authority, refuse, answer }: Question & { readonly answer: PromiseLike<unknown> },
): Promise<void> {
  const late = (): Error => new Error(`verify did not answer within ${authority.timeoutMs} ms`);
  let settled: unknown;
  try {
    settled = await withDeadline(Promise.resolve(answer), authority.timeoutMs, late);
  } catch (error) {
    throw unavailable(error);
  }
  accept(req, userPass, { answer: settled, refuse });
}

function accept(
  req: GuardRequest,
  { username }: UserPass,
  { answer, refuse }: { readonly answer: unknown; readonly refuse: Refuse },
): void {
  // Whatever the types say: a row, a count or "false" is no consent.
  if (answer !== true) throw refuse("wrong");
  admit(req, { username, index: undefined });
}

function admit(req: GuardRequest, credential: VerifiedCredential): void {
  verified.set(req, credential);
  req.webhook = { ...req.webhook, credentialIndex: credential.index };
}

function unavailable(cause: unknown): GuardError {
  return new GuardError({
    status: 503,
    code: "credentials-unavailable",
    message: "verify gave no answer",
    headers: { "Retry-After": "5" },
    cause,
  });
}
