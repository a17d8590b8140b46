import { randomUUID } from "node:crypto";
import { TLSSocket } from "node:tls";
import { verifyContentDigest } from "@countersign/content-digest";
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
  assertTimely,
  isVerificationKey,
  MessageSignatureError,
  queryCovering,
  readSignature,
  verifySignatureAsync,
  type ReceivedSignature,
  type RequestMessage,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { readRawBody } from "@countersign/raw-body";
import { resolveOptions, type HttpSignatureVerifyOptions, type ResolvedOptions } from "./options.ts";

/** What is known of the signature of a request that httpSignatureVerify let pass. */
export interface VerifiedSignature {
  readonly label: string;
  readonly keyid: string;
  readonly alg: "ed25519";
  /** Unix seconds. */
  readonly created: number;
  /** Unix seconds. */
  readonly expires: number;
  readonly nonce: string;
  /** Undefined when the signature has none. */
  readonly tag: string | undefined;
  /** Names of the covered components, in the order of the signature. */
  readonly components: readonly string[];
}

declare global {
  namespace Express {
    interface Request {
      /** Set by httpSignatureVerify. For display; to decide by it, use `verifiedSignature(req)`. */
      signature?: VerifiedSignature | undefined;
    }
  }
}

const digestAlgorithms = ["sha-256", "sha-512"] as const;
const verified: RequestFact<ReceivedSignature> = createRequestFact();
const claimTokens: RequestFact<string> = createRequestFact();

/** The signature that httpSignatureVerify verified on this very request; undefined when it did not. */
export function verifiedSignature(req: GuardRequest): VerifiedSignature | undefined {
  const received = verified.get(req);
  return received === undefined ? undefined : Object.freeze(describeSignature(received));
}

/**
 * Verifies the HTTP Message Signature (RFC 9421) of a request, the digest of its body (RFC 9530), its time window and its
 * nonce. Works alone or behind rawBody and contentDigest. Rejects with 401 for anything wrong with these, 503 when a store
 * does not answer, 413 and 415 for the body. Throws a TypeError on a bad option.
 */
export function httpSignatureVerify(options: HttpSignatureVerifyOptions): Middleware {
  const resolved = resolveOptions(options);
  return guard("httpSignatureVerify", (req) => {
    assertNoKeyClaimed("httpSignatureVerify", req);
    return verifyRequest(req, resolved);
  });
}

// The nonce is claimed last: nobody can use one up without a valid signature over the very body.
async function verifyRequest(req: GuardRequest, options: ResolvedOptions): Promise<void> {
  try {
    const received = readSignature(toMessage(req, options), options.profile);
    assertRequestCovered(req, received, options);
    assertInTime(received, options);
    const key = await lookupKey(received, options);
    assertInTime(received, options);
    await verifySignatureAsync(received, key);
    assertInTime(received, options);
    await verifyBody(req, received, options);
    assertInTime(received, options);
    await claimNonce(req, received, options);
    // A store that answered late must not let an expired signature through.
    assertInTime(received, options);
    remember(req, received);
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    throw new GuardError({
      status: 401,
      code: error.code,
      message: `httpSignatureVerify: ${error.message}`,
      cause: error,
    });
  }
}

function toMessage(req: GuardRequest, { pathPrefix, origin }: ResolvedOptions): RequestMessage {
  return {
    method: req.method ?? "",
    // The router has cut its mount path off req.url; the signature is over the whole.
    target: pathPrefix + (req.originalUrl ?? req.url ?? ""),
    rawHeaders: req.rawHeaders,
    scheme: origin?.scheme ?? (req.socket instanceof TLSSocket ? "https" : "http"),
    authority: origin?.authority,
  };
}

function assertRequestCovered(
  req: GuardRequest,
  { coveredComponents, values }: ReceivedSignature,
  { allowUnsignedQuery }: ResolvedOptions,
): void {
  if (hasMethodOverride(req)) {
    throw refusal("method-override", "the request asks to be taken for another method");
  }
  const signsQuery = coveredComponents.some((name) => queryCovering.includes(name));
  if (values.target.query !== undefined && !signsQuery && !allowUnsignedQuery) {
    throw refusal("query-not-covered", "the request has a query that the signature does not cover");
  }
}

// An app that honours one of these would run another method than the signed one.
function hasMethodOverride(req: GuardRequest): boolean {
  const { headers } = req;
  return (
    headers["x-http-method-override"] !== undefined ||
    headers["x-http-method"] !== undefined ||
    headers["x-method-override"] !== undefined ||
    ("originalMethod" in req && req.originalMethod !== req.method)
  );
}

function assertInTime(received: ReceivedSignature, { profile, clock }: ResolvedOptions): void {
  assertTimely(received, profile, clock() / 1000);
}

async function lookupKey(
  { keyid }: ReceivedSignature,
  { lookupKey: lookup, storeTimeoutMs }: ResolvedOptions,
): Promise<VerificationKey | undefined> {
  const ask = { code: "key-store-unavailable", name: "the key store", timeoutMs: storeTimeoutMs };
  const answer = askStore(ask, () => lookup(keyid));
  // Databases say null for what they do not have: another answer than to an unknown keyid elsewhere would tell them apart.
  const key = (isPromiseLike(answer) ? await answer : answer) ?? undefined;
  if (key === undefined || isVerificationKey(key)) return key;
  const cause = new TypeError("option keys returned something else than importVerificationKey makes");
  throw unavailable(ask, cause);
}

async function verifyBody(
  req: GuardRequest,
  received: ReceivedSignature,
  options: ResolvedOptions,
): Promise<void> {
  const body = readRawBody(req, options.limitBytes);
  const bytes = isPromiseLike(body) ? await body : body;
  if (received.coveredComponents.includes("content-digest")) {
    verifyContentDigest(req, bytes, digestAlgorithms, true);
  } else if (bytes.length > 0) {
    throw refusal("body-not-covered", "the request has a body that the signature does not cover");
  }
}

async function claimNonce(
  req: GuardRequest,
  { keyid, nonce, expires }: ReceivedSignature,
  { nonces, profile, clock, storeTimeoutMs }: ResolvedOptions,
): Promise<void> {
  // One window longer than the signature lives: the clocks of two verifiers and of the store may differ.
  const marginSeconds = profile.windowSeconds + profile.clockSkewSeconds;
  const claim = {
    scope: keyid,
    nonce,
    token: claimToken(req),
    retainMs: Math.ceil((expires + marginSeconds) * 1000 - clock()),
  };
  const ask = { code: "nonce-store-unavailable", name: "the nonce store", timeoutMs: storeTimeoutMs };
  const pending = askStore(ask, () => nonces.claim(claim));
  const answer = isPromiseLike(pending) ? await pending : pending;
  if (answer !== "fresh") throw refusal("nonce-replayed", "the nonce was used before");
}

// One token for each request: a second verifier on the same route does not take the first one's claim for a replay.
function claimToken(req: GuardRequest): string {
  const known = claimTokens.get(req);
  if (known !== undefined) return known;
  const token = randomUUID();
  claimTokens.set(req, token);
  return token;
}

interface StoreCall {
  readonly code: string;
  readonly name: string;
  readonly timeoutMs: number;
}

// A store that answers at once costs no promise.
function askStore<T>(call: StoreCall, ask: () => T | Promise<T>): T | Promise<T> {
  try {
    const answer = ask();
    return isPromiseLike(answer) ? answerInTime(call, Promise.resolve(answer)) : answer;
  } catch (error) {
    throw unavailable(call, error);
  }
}

async function answerInTime<T>(call: StoreCall, answer: Promise<T>): Promise<T> {
  const { timeoutMs } = call;
  try {
    return await withDeadline(answer, timeoutMs, () => new Error(`no answer within ${timeoutMs} ms`));
  } catch (error) {
    throw unavailable(call, error);
  }
}

function unavailable({ code, name }: StoreCall, cause: unknown): GuardError {
  const message = `httpSignatureVerify: ${name} gave no usable answer`;
  return new GuardError({ status: 503, code, message, headers: { "Retry-After": "5" }, cause });
}

function remember(req: GuardRequest, received: ReceivedSignature): void {
  verified.set(req, received);
  req.signature = describeSignature(received);
}

function describeSignature(received: ReceivedSignature): VerifiedSignature {
  const { label, keyid, alg, created, expires, nonce, tag, coveredComponents } = received;
  return { label, keyid, alg, created, expires, nonce, tag, components: [...coveredComponents] };
}

function refusal(code: string, message: string): GuardError {
  return new GuardError({ status: 401, code, message: `httpSignatureVerify: ${message}` });
}
