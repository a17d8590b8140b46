import type { GuardRequest, GuardResponse } from "@countersign/guard";
import type { Heartbeats } from "./lease.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Retries } from "./retries.ts";
import type { Waiters } from "./waiters.ts";

/** One request that wants to own a key. */
export interface Attempt {
  readonly req: GuardRequest;
  readonly res: GuardResponse;
  readonly key: string;
  readonly fingerprint: string;
  readonly token: string;
}

/** What all attempts at one guard share. */
export interface GuardState {
  readonly options: ResolvedOptions;
  readonly heartbeats: Heartbeats;
  readonly retries: Retries;
  readonly waiters: Waiters;
}
