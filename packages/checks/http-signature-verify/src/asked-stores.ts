import { randomUUID } from "node:crypto";
import { createRequestFact, GuardError, type ReceivedRequest, type RequestFact } from "@countersign/core";
import { askStore } from "@countersign/core/door";
import { endOf, isVerificationKey } from "@countersign/http-message-signatures/door";
import type { ReceivedSignature, VerificationKey } from "@countersign/http-message-signatures";
import type { HttpSignatureCode } from "./codes.ts";
import type { ResolvedVerifyOptions } from "./options.ts";

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

/** Finds the key of a signature; undefined when nobody knows it. Rejects with a GuardError (503) without a usable answer of the store. */
export async function lookupKey(
  request: ReceivedRequest,
  { keyid }: ReceivedSignature,
  { knownKeys, keyStore: store, storeTimeoutMs: timeoutMs }: ResolvedVerifyOptions,
): Promise<VerificationKey | undefined> {
  if (store === undefined) return knownKeys.get(keyid);
  const { engine } = store;
  const key = await askStore({ ...keyStore, engine, timeoutMs }, () => store.get(keyid), request);
  // Databases say null for what they do not have: another answer than to an unknown keyid elsewhere would tell them apart.
  if (key === undefined || key === null) return undefined;
  if (isVerificationKey(key)) return key;
  throw keyStore.failure(
    new TypeError("option keys returned something else than importVerificationKey makes"),
  );
}

const claimTokens: RequestFact<string> = createRequestFact();

/** Uses up the nonce of a signature, where it has one. Rejects with a GuardError: 401 when it was used before, 503 when the store fails. */
export async function claimNonce(
  request: ReceivedRequest,
  received: ReceivedSignature,
  { nonces, windowSeconds, clockSkewSeconds, clock, storeTimeoutMs: timeoutMs }: ResolvedVerifyOptions,
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
  const step = { ...nonceStore, engine, timeoutMs };
  const answer = await askStore(step, () => nonces.claim(claim), request);
  if (answer !== "fresh") throw nonceReplayed();
}

// One token for each request: a second verifier on the same route does not take the first one's claim for a replay.
function claimToken(request: ReceivedRequest): string {
  const known = claimTokens.get(request);
  if (known !== undefined) return known;
  const token = randomUUID();
  claimTokens.set(request, token);
  return token;
}

function nonceReplayed(): GuardError<HttpSignatureCode> {
  const message = "httpSignatureVerify: the nonce was used before";
  return new GuardError<HttpSignatureCode>({ status: 401, code: "nonce-replayed", message });
}

function unavailable(code: HttpSignatureCode, name: string, cause: unknown): GuardError<HttpSignatureCode> {
  return new GuardError<HttpSignatureCode>({
    status: 503,
    code,
    message: `httpSignatureVerify: ${name} gave no usable answer`,
    headers: { "Retry-After": "5" },
    cause,
  });
}
