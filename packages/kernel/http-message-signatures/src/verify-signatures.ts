import { MessageSignatureError } from "./message-signature-error.ts";
import type { Message } from "./message.ts";
import { verify, type ReceivedSignature, type VerifyOptions } from "./verify.ts";

/**
 * Verifies several signatures on one message (RFC 9421 section 3.2.1), each by a profile of its own, told apart by label, tag or whatever
 * else a profile says. `all`: each profile has its signature, and no two have the same one. `any`: at least one has. Each picks
 * exactly one signature, or it is ambiguous. Returns what was verified, in the order of the profiles; throws the first
 * MessageSignatureError.
 */
export function verifySignatures(
  message: Message,
  profiles: readonly VerifyOptions[],
  need: "all" | "any" = "all",
): readonly ReceivedSignature[] {
  if (profiles.length === 0) throw new TypeError("verifySignatures: no profile is given");
  const verified: ReceivedSignature[] = [];
  let misfit: MessageSignatureError | undefined;
  for (const profile of profiles) {
    try {
      verified.push(verify(message, profile));
    } catch (error) {
      if (need === "all" || !(error instanceof MessageSignatureError)) throw error;
      // Two that fit one profile are no sign that the next one will do.
      if (error.code === "signature-ambiguous") throw error;
      misfit ??= error;
    }
  }
  if (need === "all" && new Set(verified.map(({ label }) => label)).size < profiles.length) {
    throw new MessageSignatureError("signature-ambiguous", "one signature fits two of the profiles");
  }
  if (verified.length === 0 && misfit !== undefined) throw misfit;
  return verified;
}
