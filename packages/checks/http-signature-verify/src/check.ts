import { channel, type Channel } from "node:diagnostics_channel";
import { verifyByPolicy, type DigestPolicy } from "@countersign/content-digest";
import {
  createRequestFact,
  GuardError,
  guardChannel,
  keyUseChannelName,
  type KeyUseEvent,
  type ReceivedRequest,
  type RequestFact,
  type VerdictFacts,
} from "@countersign/core";
import { fieldLines, noteVerdict, type OptionOwner } from "@countersign/core/door";
import {
  assertTimely,
  MessageSignatureError,
  readSignature,
  verifySignature,
  verifySignatureAsync,
  type ReceivedSignature,
  type RequestMessage,
  type SignatureAlgorithm,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { queryCovering } from "@countersign/http-message-signatures/door";
import { readBody } from "@countersign/raw-body";
import type { HttpSignatureCode } from "./codes.ts";
import { coverageWarner } from "./profile-components.ts";
import { claimNonce, lookupKey } from "./asked-stores.ts";
import {
  factoryName,
  resolveOptions,
  type HttpSignatureVerifyOptions,
  type ResolvedVerifyOptions,
} from "./options.ts";

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
  owner: OptionOwner = factoryName,
): VerifyHttpSignature {
  const resolved = resolveOptions(options, owner);
  const warnOfCoverage = coverageWarner(resolved);
  return (request) => {
    warnOfCoverage?.(request);
    return verifyRequest(request, resolved);
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
  return verifyRequest(request, resolveOptions(options, factoryName));
}

/** {@link verifyHttpSignature} for whoever looks at a request again, to explain it: that is no use of the key, and nobody is told of one. */
export async function recheckHttpSignature(
  request: ReceivedRequest,
  options: HttpSignatureVerifyOptions,
): Promise<VerifiedSignature> {
  return verifyRequest(request, resolveOptions(options, factoryName), { isKeyUse: false });
}

/** The refusal of a request that asks to be taken for another method: an app that obeys runs another than the signed one. */
export function methodOverride(): GuardError<HttpSignatureCode> {
  return refusal("method-override", "the request asks to be taken for another method");
}

// The nonce is claimed last: nobody can use one up without a valid signature over the very body.
async function verifyRequest(
  request: ReceivedRequest,
  options: ResolvedVerifyOptions,
  { isKeyUse } = { isKeyUse: true },
): Promise<VerifiedSignature> {
  try {
    const message = toMessage(request, options);
    const received = readSignature(message, options);
    const found = new FoundSoFar(received, options.clock);
    noteVerdict(request, found);
    assertRequestCovered(request, received, options);
    assertInTime(received, options);
    const key = await lookupKey(request, received, options);
    found.subject = key?.subject;
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
    found.verified();
    return signature;
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    throw new GuardError<HttpSignatureCode>({
      status: 401,
      code: error.code,
      message: `httpSignatureVerify: ${error.message}`,
      cause: error,
    });
  }
}

/** What verdicts tell of a signature, read when one is made. */
class FoundSoFar implements VerdictFacts {
  /** Known once the key is. */
  subject: string | undefined;
  readonly #received: ReceivedSignature;
  readonly #clock: () => number;
  #isVerified = false;
  #ageWhenVerified: number | undefined;

  constructor(received: ReceivedSignature, clock: () => number) {
    this.#received = received;
    this.#clock = clock;
  }

  get label(): string {
    return this.#received.label;
  }

  get keyid(): string {
    return this.#received.keyid;
  }

  get created(): number | undefined {
    return this.#received.created;
  }

  get ageSeconds(): number | undefined {
    if (this.#isVerified) return this.#ageWhenVerified;
    return this.created === undefined ? undefined : this.#clock() / 1000 - this.created;
  }

  /** Later verdicts tell the age of this moment, or none where nobody listens. */
  verified(): void {
    if (guardChannel.hasSubscribers) this.#ageWhenVerified = this.ageSeconds;
    this.#isVerified = true;
  }

  get components(): readonly string[] {
    return this.#received.coveredComponents;
  }
}

const keyUseChannel: Channel = channel(keyUseChannelName);

/** Tells that a key has verified a signature, whatever becomes of the request. Costs nothing when nobody listens. */
function publishKeyUse({ keyid, created }: ReceivedSignature, key: VerificationKey | undefined): void {
  if (!keyUseChannel.hasSubscribers) return;
  const event: KeyUseEvent = { keyid, subject: key?.subject, created, notAfter: key?.notAfter };
  keyUseChannel.publish(event);
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
  const signsQuery = coveredComponents.some((name) => queryCovering.includes(name));
  if (values.target?.query !== undefined && !signsQuery && !allowUnsignedQuery) {
    throw refusal("query-not-covered", "the request has a query that the signature does not cover");
  }
}

const overrideFields = ["x-http-method-override", "x-http-method", "x-method-override"];

function assertInTime(received: ReceivedSignature, options: ResolvedVerifyOptions): void {
  assertTimely(received, options, options.clock() / 1000);
}

async function verifyBytes(
  received: ReceivedSignature,
  key: VerificationKey | undefined,
  { clock, environment, engine, threadPool }: ResolvedVerifyOptions,
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
