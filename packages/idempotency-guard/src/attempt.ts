import type { GuardRequest, GuardResponse } from "@countersign/guard";
import type { IdempotencyKeys } from "./idempotency-keys.ts";
import type { KeyAttempt } from "./key-attempt.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Waiters } from "./waiters.ts";

/** One request that wants to own a key. */
export interface Attempt extends KeyAttempt {
  readonly req: GuardRequest;
  readonly res: GuardResponse;
}

/** What all attempts at one guard share. */
export interface GuardState {
  readonly options: ResolvedOptions;
  readonly keys: IdempotencyKeys;
  readonly waiters: Waiters;
}
