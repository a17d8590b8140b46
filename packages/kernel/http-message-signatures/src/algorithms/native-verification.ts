import { verify, type KeyObject, type SigningOptions } from "node:crypto";
import type { Algorithm } from "./algorithm.ts";

/** How node:crypto verifies an algorithm, and what it may refuse before it does any work. */
export interface NativeVerification {
  /** The digest that is signed. */
  readonly digest: string;
  readonly options: SigningOptions;
  /** Whether the signature has the right length, and its numbers are in their range. */
  readonly isSound: (key: KeyObject, signature: Uint8Array) => boolean;
  /** Sound, and verified in place of a signature that is not, for the time alone. */
  readonly placeholder: (key: KeyObject) => Uint8Array;
}

/** Both ways of verifying by node:crypto. Each spends one verification, whatever the signature looks like. */
export function verifyNatively({
  digest,
  options,
  isSound,
  placeholder,
}: NativeVerification): Pick<Algorithm, "verify" | "verifyAsync"> {
  return {
    verify(key, data, signature) {
      const sound = isSound(key, signature);
      const matches = verify(digest, data, { key, ...options }, sound ? signature : placeholder(key));
      return sound && matches;
    },
    verifyAsync(key, data, signature) {
      const sound = isSound(key, signature);
      return new Promise((resolve, reject) => {
        const verified = sound ? signature : placeholder(key);
        verify(digest, data, { key, ...options }, verified, (error, matches) => {
          if (error === null) resolve(sound && matches);
          else reject(error);
        });
      });
    },
  };
}
