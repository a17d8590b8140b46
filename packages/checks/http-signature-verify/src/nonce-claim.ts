import { randomUUID } from "node:crypto";
import {
  createRequestFact,
  type GuardError,
  type NonceClaim,
  type ReceivedRequest,
  type RequestFact,
} from "@countersign/core";
import { askStore } from "@countersign/core/internal";
import { assertTimely, type ReceivedSignature } from "@countersign/http-message-signatures";
import { endOf } from "@countersign/http-message-signatures/internal";
import type { HttpSignatureCode } from "./codes.ts";
import type { ResolvedVerifyOptions } from "./options.ts";
import { refusal, refusalOf, unavailable } from "./refusals.ts";

/** A verified signature's nonce, which whoever asked for it claims. */
export interface UnclaimedNonce {
  readonly claim: NonceClaim;
  /** Throws a GuardError (401) once the signature is too old. */
  assertTimely(this: void): void;
  /** The refusal (401) of a nonce that was used before. */
  replayed(this: void): GuardError<HttpSignatureCode>;
  /** Claims the nonce in the option `nonces`; rejects as {@link httpSignatureVerifier}. */
  claimAlone(this: void): Promise<void>;
}

export function unclaimed(
  request: ReceivedRequest,
  received: ReceivedSignature,
  options: ResolvedVerifyOptions,
  claim: NonceClaim,
): UnclaimedNonce {
  return {
    claim,
    assertTimely() {
      try {
        assertInTime(received, options);
      } catch (error) {
        throw refusalOf(error);
      }
    },
    replayed,
    claimAlone: async () => claimNonce(request, received, options),
  };
}

export function assertInTime(received: ReceivedSignature, options: ResolvedVerifyOptions): void {
  assertTimely(received, options, options.clock() / 1000);
}

const nonceStoreFailed = unavailable("nonce-store-unavailable", "the nonce store");

const claimTokens: RequestFact<string> = createRequestFact();

/** Undefined where requiredParameters leaves the nonce out, or nobody keeps it. */
export function nonceClaimOf(
  req: ReceivedRequest,
  received: ReceivedSignature,
  { nonces, windowSeconds, clockSkewSeconds, clock }: ResolvedVerifyOptions,
): NonceClaim | undefined {
  const { keyid: scope, nonce } = received;
  if (nonces === undefined || nonce === undefined) return undefined;
  // Infinite only where neither created nor expires is required, which the options refuse.
  const end = endOf(received, windowSeconds) ?? Infinity;
  // One window longer than the signature lives: the clocks of two verifiers and of the store may differ.
  const marginSeconds = windowSeconds + clockSkewSeconds;
  // One token for each request: a second verifier on the same route does not take the first one's claim for a replay.
  const token = claimTokens.get(req) ?? randomUUID();
  claimTokens.set(req, token);
  return { scope, nonce, token, retainMs: Math.ceil((end + marginSeconds) * 1000 - clock()) };
}

/** Rejects with a GuardError: 401 for a used nonce, 503 when the store fails. */
export async function claimNonce(
  req: ReceivedRequest,
  received: ReceivedSignature,
  options: ResolvedVerifyOptions,
): Promise<void> {
  const { nonces, storeTimeoutMs: timeoutMs } = options;
  const claim = nonceClaimOf(req, received, options);
  if (nonces === undefined || claim === undefined) return;
  const { engine } = nonces;
  const asked = {
    engine,
    step: "claim-nonce",
    timeoutMs,
    name: "the nonce store",
    failure: nonceStoreFailed,
  };
  const answer = await askStore(asked, () => nonces.claim(claim), req);
  if (answer !== "fresh") throw replayed();
}

function replayed(): GuardError<HttpSignatureCode> {
  return refusal("nonce-replayed", "the nonce was used before");
}
