import { verifyByPolicy } from "@countersign/content-digest";
import {
  channels,
  createRequestFact,
  guardChannel,
  type GuardError,
  type PublishedEvents,
  type ReceivedRequest,
  type RequestFact,
} from "@countersign/core";
import { askStore, fieldLines, verdicts, type OptionOwner } from "@countersign/core/internal";
import {
  MessageSignatureError,
  readSignature,
  verifySignature,
  verifySignatureAsync,
  type ReceivedSignature,
  type RequestMessage,
  type SignatureAlgorithm,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { coversQuery, isVerificationKey } from "@countersign/http-message-signatures/internal";
import { readBody } from "@countersign/raw-body";
import type { HttpSignatureCode } from "./codes.ts";
import type { AskedKeyStore } from "./key-store.ts";
import { assertInTime, claimNonce, nonceClaimOf, unclaimed, type UnclaimedNonce } from "./nonce-claim.ts";
import {
  factoryName,
  resolveOptions,
  type HttpSignatureVerifyOptions,
  type ResolvedVerifyOptions,
} from "./options.ts";
import { coverageWarner } from "./profile.ts";
import { pickByPolicy } from "./policy.ts";
import { policyUnknown, refusal, refusalOf, unavailable } from "./refusals.ts";

export interface VerifiedSignature {
  readonly label: string;
  readonly keyid: string;
  readonly alg: SignatureAlgorithm;
  /** Unix seconds. This and the next three are undefined when the signature has none and `requiredParameters` allows it. */
  readonly created: number | undefined;
  /** Unix seconds. */
  readonly expires: number | undefined;
  readonly nonce: string | undefined;
  readonly tag: string | undefined;
  /** Whose key it is; undefined when the key does not say. */
  readonly subject: string | undefined;
  /** Covered components in the order of the signature: bare names, or full identifiers such as `"x-note";bs`. */
  readonly components: readonly string[];
}

const verified: RequestFact<VerifiedSignature> = createRequestFact();
const verifiedMessages: RequestFact<RequestMessage> = createRequestFact();

/** The signature that was verified on this very request; undefined when none was. */
export function verifiedSignature(subject: object): VerifiedSignature | undefined {
  return verified.get(subject);
}

/** The request as its signature was verified, with the signer's path and origin; undefined when none was. */
export function verifiedMessage(subject: object): RequestMessage | undefined {
  return verifiedMessages.get(subject);
}

/**
 * Makes the check of a signature (RFC 9421). It covers the body's digest (RFC 9530), the time window and the nonce. Rejects with a GuardError: 401
 * for these, 503 when a store does not answer, 413 and 415 for the body. Throws an OptionError in the name of `owner`.
 */
export function httpSignatureVerifier(
  options: HttpSignatureVerifyOptions,
  owner: OptionOwner = factoryName,
): (request: ReceivedRequest) => Promise<VerifiedSignature> {
  const resolved = resolveOptions(options, owner);
  const warnOfCoverage = commonWarner(resolved);
  return (request) => {
    warnOfCoverage?.(request);
    return verifyRequest(request, resolved, usual);
  };
}

/** Undefined with `policy`, since each policy is warned of by itself. */
function commonWarner(resolved: ResolvedVerifyOptions): ReturnType<typeof coverageWarner> {
  return resolved.policies === undefined ? coverageWarner(resolved) : undefined;
}

/** A signature that is verified but for its nonce, which whoever asked claims. */
export interface UnclaimedSignature {
  readonly signature: VerifiedSignature;
  readonly nonce: UnclaimedNonce;
}

/** As {@link httpSignatureVerifier}, but leaves the nonce to the caller. The caller claims it in the request's transaction. */
export function unclaimedVerifier(
  options: HttpSignatureVerifyOptions & Required<Pick<HttpSignatureVerifyOptions, "nonces">>,
  owner: OptionOwner = factoryName,
): (request: ReceivedRequest) => Promise<UnclaimedSignature> {
  const resolved = resolveOptions(options, owner);
  const warnOfCoverage = commonWarner(resolved);
  return async (request) => {
    warnOfCoverage?.(request);
    let nonce: UnclaimedNonce | undefined;
    const defer: ClaimNonce = (_request, received, policy) => {
      const claim = nonceClaimOf(request, received, policy);
      nonce = claim && unclaimed(request, received, policy, claim);
    };
    const signature = await verifyRequest(request, resolved, { isKeyUse: true, claim: defer });
    if (nonce === undefined)
      throw new Error("httpSignatureVerify: a signature without nonce cannot leave it to others");
    return { signature, nonce };
  };
}

/** Verifies a single request: checks options and imports keys at each call. */
export async function verifyHttpSignature(
  request: ReceivedRequest,
  options: HttpSignatureVerifyOptions,
): Promise<VerifiedSignature> {
  return verifyRequest(request, resolveOptions(options, factoryName), usual);
}

/** For a request that is explained: reports no use of the key. */
export async function recheckHttpSignature(
  request: ReceivedRequest,
  options: HttpSignatureVerifyOptions,
): Promise<VerifiedSignature> {
  return verifyRequest(request, resolveOptions(options, factoryName), { ...usual, isKeyUse: false });
}

/** Refuses a method override: an app that obeys it runs another method than the signed one. */
export function methodOverride(): GuardError<HttpSignatureCode> {
  return refusal("method-override", "the request asks to be taken for another method");
}

type ClaimNonce = (
  request: ReceivedRequest,
  received: ReceivedSignature,
  options: ResolvedVerifyOptions,
) => void | Promise<void>;

interface Manner {
  readonly isKeyUse: boolean;
  readonly claim: ClaimNonce;
}

const usual: Manner = { isKeyUse: true, claim: claimNonce };

// The nonce is claimed last: nobody can use one up without a valid signature over the very body.
async function verifyRequest(
  request: ReceivedRequest,
  base: ResolvedVerifyOptions,
  { isKeyUse, claim }: Manner,
): Promise<VerifiedSignature> {
  let options = base;
  let hasPolicy = true;
  let received: ReceivedSignature | undefined;
  let key: VerificationKey | undefined;
  try {
    const message = toMessage(request, options);
    const { policies } = base;
    if (policies === undefined) received = readSignature(message, base);
    else ({ received, options, hasPolicy } = await pickByPolicy(request, message, { base, policies }));
    assertRequestCovered(request, received, options);
    assertInTime(received, options);
    const { keyStore } = options;
    key =
      keyStore === undefined
        ? options.knownKeys.get(received.keyid)
        : await askKeyStore(request, received.keyid, keyStore, options);
    // Whom no policy knows has no key either.
    if (!hasPolicy) key = undefined;
    assertInTime(received, options);
    const context = { now: options.clock() / 1000, environment: options.environment };
    if (options.threadPool) await verifySignatureAsync(received, key, context);
    else verifySignature(received, key, options.engine, context);
    assertInTime(received, options);
    if (isKeyUse) publishKeyUse(received, key);
    assertBodyCovered(request, received, await readBody(request, options.limit), options);
    assertInTime(received, options);
    await claim(request, received, options);
    // A store that answered late must not let an expired signature through.
    assertInTime(received, options);
    const signature = describeSignature(received, key);
    verified.set(request, signature);
    verifiedMessages.set(request, message);
    verdicts.note(request, signature);
    // Later verdicts report the age of this moment.
    if (guardChannel.hasSubscribers) verdicts.note(request, { ageSeconds: ageOf(received, options) });
    return signature;
  } catch (error) {
    if (received !== undefined) noteRefused(request, received, key, options);
    throw !hasPolicy && error instanceof MessageSignatureError ? policyUnknown(error) : refusalOf(error);
  }
}

function noteRefused(
  request: ReceivedRequest,
  received: ReceivedSignature,
  key: VerificationKey | undefined,
  options: ResolvedVerifyOptions,
): void {
  const { label, keyid, created, coveredComponents: components } = received;
  const ageSeconds = ageOf(received, options);
  verdicts.note(request, { label, keyid, subject: key?.subject, created, ageSeconds, components });
}

function ageOf({ created }: ReceivedSignature, { clock }: ResolvedVerifyOptions): number | undefined {
  return created === undefined ? undefined : clock() / 1000 - created;
}

/** Publishes a use whatever becomes of the request. Costs nothing without subscribers. */
function publishKeyUse({ keyid, created }: ReceivedSignature, key: VerificationKey | undefined): void {
  if (!channels.keyUse.hasSubscribers) return;
  const event: PublishedEvents["keyUse"] = { keyid, subject: key?.subject, created, notAfter: key?.notAfter };
  channels.keyUse.publish(event);
}

function toMessage(request: ReceivedRequest, { pathPrefix, origin }: ResolvedVerifyOptions): RequestMessage {
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
  { allowUnsignedQuery }: ResolvedVerifyOptions,
): void {
  if (overrideFields.some((name) => fieldLines(request, name).length > 0)) throw methodOverride();
  const query = values.target?.query;
  if (query === undefined || allowUnsignedQuery || coversQuery(query, new Set(coveredComponents))) return;
  throw refusal("query-not-covered", "the request has a query that the signature does not cover");
}

const overrideFields = ["x-http-method-override", "x-http-method", "x-method-override"];

const digestPolicy = { algorithms: ["sha-256", "sha-512"], required: true, status: 401 } as const;

function assertBodyCovered(
  request: ReceivedRequest,
  { coveredComponents }: ReceivedSignature,
  bytes: Buffer,
  { allowUnsignedBody }: ResolvedVerifyOptions,
): void {
  if (coveredComponents.some((component) => digestCovering.has(component))) {
    verifyByPolicy(request, bytes, digestPolicy);
  } else if (bytes.length > 0 && !allowUnsignedBody) {
    throw refusal("body-not-covered", "the request has a body that the signature does not cover");
  }
}

// The whole field: with `;key` another member could be the one that is compared.
const digestCovering = new Set(["content-digest", '"content-digest";sf', '"content-digest";bs']);

function describeSignature(received: ReceivedSignature, key: VerificationKey | undefined): VerifiedSignature {
  const { label, keyid, created, expires, nonce, tag, coveredComponents } = received;
  const alg = received.alg ?? key?.alg;
  if (alg === undefined) throw new Error("httpSignatureVerify: a signature was verified without a key");
  const { subject } = key ?? {};
  const components = Object.freeze([...coveredComponents]);
  return Object.freeze({ label, keyid, alg, created, expires, nonce, tag, subject, components });
}

const keyStoreFailed = unavailable("key-store-unavailable", "the key store");

/** Undefined for an unknown keyid. Rejects with a GuardError (503) without a usable answer of the store. */
async function askKeyStore(
  req: ReceivedRequest,
  keyid: string,
  store: AskedKeyStore,
  { storeTimeoutMs: timeoutMs, imported }: ResolvedVerifyOptions,
): Promise<VerificationKey | undefined> {
  const { engine } = store;
  const asked = { engine, step: "get-key", timeoutMs, name: "the key store", failure: keyStoreFailed };
  const key = await askStore(asked, () => store.get(keyid), req);
  // Databases say null for what they do not have: another answer than to an unknown keyid elsewhere would tell them apart.
  if (key === undefined || key === null) return undefined;
  return isVerificationKey(key) ? key : imported.read(keyid, key);
}
