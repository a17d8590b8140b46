/** Another value that a signer may have put behind a component. */
export interface ValueVariant {
  readonly what: string;
  readonly value: string;
  /** How that value differs, behind "the signature fits with …,". */
  readonly says: string;
  readonly isUsual?: boolean | undefined;
  /** What the verifier may change instead, as a sentence. */
  readonly hint?: string | undefined;
}

/** The text in URL encoding; as it is where it cannot be. */
export function encoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The text decoded from URL encoding; as it is where it is none. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
