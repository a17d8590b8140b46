import { MessageSignatureError } from "./message-signature-error.ts";
import type { SignatureParameters } from "./signature-parameters.ts";
import type { SignatureProfile } from "./signature-profile.ts";

type Times = Pick<SignatureParameters, "created" | "expires">;

/** The last instant at which a signature is taken, in Unix seconds; undefined of one that never ends. */
export function endOf({ created, expires }: Times, windowSeconds: number): number | undefined {
  return expires ?? (created === undefined ? undefined : created + windowSeconds);
}

/**
 * Checks `created` and `expires` against `now`, in Unix seconds with fractions (spec and RFC 9421 section 3.2.1). Both limits
 * are inclusive. Throws a MessageSignatureError: `window-too-long`, `created-in-future`, `signature-expired`.
 */
export function assertTimely(
  times: Times,
  { windowSeconds, clockSkewSeconds }: Pick<SignatureProfile, "windowSeconds" | "clockSkewSeconds">,
  now: number,
): void {
  const { created } = times;
  const end = endOf(times, windowSeconds);
  if (end === undefined) return;
  // All three negated, so that a missing option or a clock that gives NaN refuses. Without created, a signer with a clock that is
  // ahead by the skew may have signed just now.
  if (!(end - (created ?? now + clockSkewSeconds) <= windowSeconds)) {
    throw new MessageSignatureError(
      "window-too-long",
      `the signature is valid for more than ${windowSeconds} seconds`,
    );
  }
  if (created !== undefined && !(created <= now + clockSkewSeconds)) {
    throw new MessageSignatureError("created-in-future", "created lies in the future");
  }
  if (!(now <= end)) throw new MessageSignatureError("signature-expired", "the signature has expired");
}
