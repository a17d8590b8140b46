import type { NonceClaim } from "@countersign/core";

// No case outlives it.
const longRetainMs = 60_000;

/** A retention that a case waits for. No case needs an answer within it. */
export const shortRetainMs = 100;

/** A use of the one nonce of most cases, by the request `token`. */
export function useBy(token: string, overrides: Partial<NonceClaim> = {}): NonceClaim {
  const nonce = "0b7d1b5e-6d5c-4a2c-9d7e-6a7c1f1f9b11";
  return { scope: "key-1", nonce, token, retainMs: longRetainMs, ...overrides };
}
