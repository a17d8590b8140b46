import { randomUUID } from "node:crypto";
import { verifyByPolicy, type DigestPolicy } from "@countersign/content-digest";
import {
  askStore,
  createRequestFact,
  fieldLines,
  GuardError,
  guardChannel,
  noteVerdict,
  publishBuilt,
  type BuiltFacts,
  type OptionOwner,
  type ReceivedRequest,
  type RequestFact,
  type VerdictFacts,
} from "@countersign/core";
import {
  assertTimely,
  endOf,
  isVerificationKey,
  jwkThumbprint,
  MessageSignatureError,
  queryCovering,
  readSignature,
  verifySignature,
  verifySignatureAsync,
  type ReceivedSignature,
  type RequestMessage,
  type SignatureAlgorithm,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { readBody } from "@countersign/raw-body";
import type { HttpSignatureCode } from "./codes.ts";
import { publishKeyUse } from "./key-store.ts";
import { factory, resolveOptions, type HttpSignatureVerifyOptions, type ResolvedOptions } from "./options.ts";

/** What is known of a signature that was verified. */
export interface VerifiedSignature {
  readonly label: string;
  readonly keyid: string;
  /** The algorithm of the key. */
  readonly alg: SignatureAlgorithm;
  /** Unix seconds. This and the next three are undefined when the signature has none and `requiredParameters` lets that be. */
  readonly created: number | undefined;
  /** Unix seconds. */
  readonly expires: number | undefined;
  readonly nonce: string | undefined;
  readonly tag: string | undefined;
  /** Whose key it is; undefined when the key says nothing of it. */
  readonly subject: string | undefined;
  /** The covered components in the order of the signature: bare names, or full identifiers such as `"x-note";bs`. */
  readonly components: readonly string[];
}

const digestPolicy: DigestPolicy = { algorithms: ["sha-256", "sha-512"], required: true, status: 401 };
const verified: RequestFact<VerifiedSignature> = createRequestFact();
const verifiedMessages: RequestFact<RequestMessage> = createRequestFact();
const claimTokens: RequestFact<string> = createRequestFact();

/** The signature that was verified on this very request; undefined when none was. */
export function verifiedSignature(subject: object): VerifiedSignature | undefined {
  return verified.get(subject);
}

/** The request as its signature was verified, with the path and the origin that the signer knows; undefined when none was. */
export function verifiedMessage(subject: object): RequestMessage | undefined {
  return verifiedMessages.get(subject);
}

/** Verifies the signature of one request; see {@link httpSignatureVerifier}. */
export type VerifyHttpSignature = (request: ReceivedRequest) => Promise<VerifiedSignature>;

/**
 * Makes the check of HTTP Message Signatures (RFC 9421) with the digest of the body (RFC 9530), the time window and the nonce. It
 * rejects with a GuardError: 401 for anything wrong with these, 503 when a store does not answer, 413 and 415 for the body.
 * Throws an OptionError on a bad option; `owner` is who it says has it.
 */
export function httpSignatureVerifier(
  options: HttpSignatureVerifyOptions,
  owner: OptionOwner = factory,
): VerifyHttpSignature {
  const resolved = resolveOptions(options, owner);
  publishBuilt(factory, owner, () => factsOf(resolved));
  return (request) => verifyRequest(request, resolved);
}

/** Of the keys what everybody may know; none where a function or a KeyStore finds them. */
function factsOf(options: ResolvedOptions): BuiltFacts {
  const { requiredComponents, requiredParameters, windowSeconds, algorithms } = options;
  const { allowUnsignedBody, allowUnsignedQuery, knownKeys, nonces } = options;
  return {
    requiredComponents,
    requiredParameters,
    windowSeconds,
    algorithms,
    allowUnsignedBody,
    allowUnsignedQuery,
    nonces: nonces !== undefined,
    keys: knownKeys.map((key) => ({
      keyid: key.keyid,
      alg: key.alg,
      // Of a secret there is none to show: others could try guesses against it.
      thumbprint: key.publicKey.type === "public" ? jwkThumbprint(key) : null,
      notBefore: key.notBefore ?? null,
      notAfter: key.notAfter ?? null,
      revokedAt: key.revokedAt ?? null,
    })),
  };
}

/** Checks options without making anything of them. Throws an OptionError; `owner` is who it says has the option. */
export function assertVerifyOptions(options: HttpSignatureVerifyOptions, owner: OptionOwner): void {
  resolveOptions(options, owner);
}

/** {@link httpSignatureVerifier} for a single request: options are checked, and keys imported, at each call. */
export async function verifyHttpSignature(
  request: ReceivedRequest,
  options: HttpSignatureVerifyOptions,
): Promise<VerifiedSignature> {
  return verifyRequest(request, resolveOptions(options, factory));
}

/** {@link verifyHttpSignature} for whoever looks at a request again, to explain it: that is no use of the key, and nobody is told of one. */
export async function recheckHttpSignature(
  request: ReceivedRequest,
  options: HttpSignatureVerifyOptions,
): Promise<VerifiedSignature> {
  return verifyRequest(request, resolveOptions(options, factory), { isKeyUse: false });
}

/** The refusal of a request that asks to be taken for another method: an app that obeys runs another than the signed one. */
export function methodOverride(): GuardError<HttpSignatureCode> {
  return refusal("method-override", "the request asks to be taken for another method");
}

// The nonce is claimed last: nobody can use one up without a valid signature over the very body.
async function verifyRequest(
  request: ReceivedRequest,
  options: ResolvedOptions,
  { isKeyUse } = { isKeyUse: true },
): Promise<VerifiedSignature> {
  let received: ReceivedSignature | undefined;
  let key: VerificationKey | undefined;
  try {
    const message = toMessage(request, options);
    received = readSignature(message, options);
    assertRequestCovered(request, received, options);
    assertInTime(received, options);
    key = await lookupKey(request, received, options);
    assertInTime(received, options);
    await verifyBytes(received, key, options);
    assertInTime(received, options);
    if (isKeyUse) publishKeyUse(received, key);
    const { limit, allowUnsignedBody } = options;
    assertBodyCovered(request, received, { bytes: await readBody(request, limit), allowUnsignedBody });
    assertInTime(received, options);
    await claimNonce(request, received, options);
    // A store that answered late must not let an expired signature through.
    assertInTime(received, options);
    const signature = describeSignature(received, key);
    verified.set(request, signature);
    verifiedMessages.set(request, message);
    // The latter for what a later check refuses: it is there already.
    noteVerdict(request, guardChannel.hasSubscribers ? verdictFacts(received, key, options) : signature);
    return signature;
  } catch (error) {
    if (received !== undefined) noteVerdict(request, verdictFacts(received, key, options));
    if (!(error instanceof MessageSignatureError)) throw error;
    throw new GuardError<HttpSignatureCode>({
      status: 401,
      code: error.code,
      message: `httpSignatureVerify: ${error.message}`,
      cause: error,
    });
  }
}

function verdictFacts(
  { label, keyid, created, coveredComponents: components }: ReceivedSignature,
  key: VerificationKey | undefined,
  { clock }: ResolvedOptions,
): VerdictFacts {
  const ageSeconds = created === undefined ? undefined : clock() / 1000 - created;
  return { label, keyid, subject: key?.subject, created, ageSeconds, components };
}

function toMessage(request: ReceivedRequest, { pathPrefix, origin }: ResolvedOptions): RequestMessage {
  if (pathPrefix === "" && origin === undefined) return request;
  const { method, target, rawHeaders } = request;
  return {
    method,
    target: pathPrefix + target,
    rawHeaders,
    get scheme() {
      return origin?.scheme ?? request.scheme;
    },
    authority: origin?.authority,
  };
}

function assertRequestCovered(
  request: ReceivedRequest,
  { coveredComponents, values }: ReceivedSignature,
  { allowUnsignedQuery }: ResolvedOptions,
): void {
  if (overrideFields.some((name) => fieldLines(request, name).length > 0)) throw methodOverride();
  const signsQuery = coveredComponents.some((name) => queryCovering.includes(name));
  if (values.target?.query !== undefined && !signsQuery && !allowUnsignedQuery) {
    throw refusal("query-not-covered", "the request has a query that the signature does not cover");
  }
}

const overrideFields = ["x-http-method-override", "x-http-method", "x-method-override"];

function assertInTime(received: ReceivedSignature, options: ResolvedOptions): void {
  assertTimely(received, options, options.clock() / 1000);
}

async function lookupKey(
  request: ReceivedRequest,
  { keyid }: ReceivedSignature,
  { keys: lookup, keyEngine, storeTimeoutMs: timeoutMs }: ResolvedOptions,
): Promise<VerificationKey | undefined> {
  // Keys that are configured ask nobody.
  const key = await (keyEngine === undefined
    ? lookup(keyid)
    : askStore({ ...keyStore, engine: keyEngine, timeoutMs, req: request }, () => lookup(keyid)));
  // Databases say null for what they do not have: another answer than to an unknown keyid elsewhere would tell them apart.
  if (key === undefined || key === null) return undefined;
  if (isVerificationKey(key)) return key;
  throw keyStore.failure(
    new TypeError("option keys returned something else than importVerificationKey makes"),
  );
}

async function verifyBytes(
  received: ReceivedSignature,
  key: VerificationKey | undefined,
  { clock, environment, engine, threadPool }: ResolvedOptions,
): Promise<void> {
  const context = { now: clock() / 1000, environment };
  if (threadPool) await verifySignatureAsync(received, key, context);
  else verifySignature(received, key, engine, context);
}

function assertBodyCovered(
  request: ReceivedRequest,
  received: ReceivedSignature,
  { bytes, allowUnsignedBody }: { readonly bytes: Buffer; readonly allowUnsignedBody: boolean },
): void {
  if (received.coveredComponents.some((component) => digestCovering.has(component))) {
    verifyByPolicy(request, bytes, digestPolicy);
  } else if (bytes.length > 0 && !allowUnsignedBody) {
    throw refusal("body-not-covered", "the request has a body that the signature does not cover");
  }
}

// All of the field: of a member by its key, another member could be the one that is compared.
const digestCovering = new Set(["content-digest", '"content-digest";sf', '"content-digest";bs']);

async function claimNonce(
  request: ReceivedRequest,
  received: ReceivedSignature,
  { nonces, windowSeconds, clockSkewSeconds, clock, storeTimeoutMs: timeoutMs }: ResolvedOptions,
): Promise<void> {
  const { keyid, nonce } = received;
  // Undefined only where requiredParameters leaves the nonce out.
  if (nonces === undefined || nonce === undefined) return;
  // Infinite only where neither created nor expires is required, which the options refuse.
  const end = endOf(received, windowSeconds) ?? Infinity;
  // One window longer than the signature lives: the clocks of two verifiers and of the store may differ.
  const marginSeconds = windowSeconds + clockSkewSeconds;
  const claim = {
    scope: keyid,
    nonce,
    token: claimToken(request),
    retainMs: Math.ceil((end + marginSeconds) * 1000 - clock()),
  };
  const { engine } = nonces;
  const answer = await askStore({ ...nonceStore, engine, timeoutMs, req: request }, () =>
    nonces.claim(claim),
  );
  if (answer !== "fresh") throw refusal("nonce-replayed", "the nonce was used before");
}

// One token for each request: a second verifier on the same route does not take the first one's claim for a replay.
function claimToken(request: ReceivedRequest): string {
  const known = claimTokens.get(request);
  if (known !== undefined) return known;
  const token = randomUUID();
  claimTokens.set(request, token);
  return token;
}

const keyStore = {
  step: "get-key",
  name: "the key store",
  failure: (cause: unknown) => unavailable("key-store-unavailable", "the key store", cause),
};

const nonceStore = {
  step: "claim-nonce",
  name: "the nonce store",
  failure: (cause: unknown) => unavailable("nonce-store-unavailable", "the nonce store", cause),
};

function unavailable(code: HttpSignatureCode, name: string, cause: unknown): GuardError<HttpSignatureCode> {
  return new GuardError<HttpSignatureCode>({
    status: 503,
    code,
    message: `httpSignatureVerify: ${name} gave no usable answer`,
    headers: { "Retry-After": "5" },
    cause,
  });
}

function describeSignature(received: ReceivedSignature, key: VerificationKey | undefined): VerifiedSignature {
  const { label, keyid, created, expires, nonce, tag, coveredComponents } = received;
  const alg = received.alg ?? key?.alg;
  if (alg === undefined) throw new Error("httpSignatureVerify: a signature was verified without a key");
  const { subject } = key ?? {};
  const components = Object.freeze([...coveredComponents]);
  return Object.freeze({ label, keyid, alg, created, expires, nonce, tag, subject, components });
}

function refusal(code: HttpSignatureCode, message: string): GuardError<HttpSignatureCode> {
  return new GuardError<HttpSignatureCode>({ status: 401, code, message: `httpSignatureVerify: ${message}` });
}
