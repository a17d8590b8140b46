import type { ResolvedKeyOptions } from "./key-options.ts";
import type { Heartbeats } from "./lease.ts";
import type { Retries } from "./key-steps.ts";

/** One attempt to own a key. */
export interface KeyAttempt {
  readonly key: string;
  /** Digest of the payload, at most 128 characters. */
  readonly fingerprint: string;
  /** Random, new for each attempt. */
  readonly token: string;
  /** What wants the key, for notices: the request as its framework knows it. */
  readonly req?: object | undefined;
}

/** The answer that is due when the store has not confirmed a success: the sender has to come again. */
export interface KeyInDoubt {
  readonly status: 503;
  readonly retryAfterSeconds: number;
}

/** What all keys of one owner share. */
export interface KeyState {
  readonly options: ResolvedKeyOptions;
  readonly heartbeats: Heartbeats;
  readonly retries: Retries;
  readonly inDoubt: KeyInDoubt;
  /** How many keys are owned and not settled. */
  ownedKeys: number;
  /** No key is claimed any more. */
  draining: boolean;
}
