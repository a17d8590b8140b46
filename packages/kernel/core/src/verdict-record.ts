/** What checks have found of a request when its verdict is given. A member is undefined where no check knows it. */
export interface VerdictFacts {
  /** The label of the signature (RFC 9421 section 4.1), as received. */
  readonly label?: string | undefined;
  /** As received: of a signature that was refused it names no key that somebody has. */
  readonly keyid?: string | undefined;
  /** Whose signing key it is. */
  readonly subject?: string | undefined;
  /** When the signature says that it was made, in Unix seconds. */
  readonly created?: number | undefined;
  /** The verifier's time less `created`, in seconds: negative where the signer's clock is ahead. */
  readonly ageSeconds?: number | undefined;
  /** The covered components in the order of the signature. */
  readonly components?: readonly string[] | undefined;
  /** As the store keeps it. */
  readonly idempotencyKey?: string | undefined;
}

/**
 * What a check has decided about a request, as one record. Text from the wire is escaped and cut, so that it can stand in a log. None
 * of it is for the caller, unless by an option the `id`.
 */
export interface Verdict extends VerdictFacts {
  /** A UUID of this verdict alone. */
  readonly id: string;
  /** The factory's name, for example `httpSignatureVerify`. */
  readonly guard: string;
  /** `reject`: the caller's fault (4xx). `error`: the guard could not decide, or failed (5xx). */
  readonly outcome: "pass" | "reject" | "error";
  /** The code of the GuardError; `unexpected-error` for anything else; undefined on a pass. */
  readonly code: string | undefined;
  /** The HTTP status of the GuardError; 500 for anything else; undefined on a pass. */
  readonly status: number | undefined;
  /** Time in the guard alone, in milliseconds; undefined when nobody listened at its start. */
  readonly durationMs: number | undefined;
  /** Of it the time in which stores were waited for, in milliseconds, where that was measured. */
  readonly storeMs: number | undefined;
}
