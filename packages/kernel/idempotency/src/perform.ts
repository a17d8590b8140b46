// How a key is owned around some work. In lease mode the key is owned by a lease, for effects elsewhere (lease-owner.ts); in transaction mode
// by the very transaction that pays (transactions/transaction-owner.ts). Either way an attempt goes as follows:
//
//   1. It waits for its turn: in this process one attempt at a key goes on at a time.
//   2. It claims the key. Whoever has claimed it already decides what a duplicate is told (life.ts): `done` is the one answer that says
//      "paid", `held` waits for an operator, and with a key that runs in another process the attempt waits until that has ended.
//   3. It does the work: the handler. Adapters call it, such as transaction-handler.ts of idempotency-guard.
//   4. It ends the key by how the work has ended, and only then is there a response to send.
//
// Names such as I9 are the invariants of docs/architecture.md.
import type { NonceClaim } from "@countersign/core";
import { isPromiseLike } from "@countersign/core/internal";
import type { IdempotencyClaimResult } from "./store.ts";
import {
  isTurn,
  type DecidedKey,
  type PollOptions,
  type Turn,
  type WaitingRoom,
  type WhileConnected,
} from "./waiting.ts";

/** One attempt at a key. */
export interface KeyAttempt {
  readonly key: string;
  /** Digest of the payload, at most 128 characters. */
  readonly fingerprint: string;
  /** Random, new for each attempt. */
  readonly token: string;
  /** The claimant, for notices: the request as its framework knows it. */
  readonly req?: object | undefined;
}

/** What an attempt wants to own, and for whom. */
export interface Attempt {
  /** Different from each other. In transaction mode an attempt may have several, such as one for each event of a webhook, or none. */
  readonly keys: readonly KeyAttempt[];
  /** Of a signed request in transaction mode: the nonce is claimed with the keys. */
  readonly nonce?: NonceClaim | undefined;
  readonly req?: object | undefined;
  /** Absent where no client waits. */
  readonly whileConnected?: WhileConnected | undefined;
}

/** Why a key is not owned: another attempt has it, or had it. */
export type KeyRefusal = Exclude<IdempotencyClaimResult, { readonly status: "acquired" }>;

/** How the work has ended that owned its key, or why the key was not owned. */
export type Performed<Result> =
  | { readonly status: "ended"; readonly result: Result }
  | DecidedKey
  | { readonly status: "in-flight" | "client-left" | "nonce-seen" };

/** How an attempt waits for others at its key, by its mode. */
export interface WaitingRules {
  readonly room: WaitingRoom;
  /** How long a duplicate waits in all, in milliseconds. */
  readonly waitMs: number;
  /**
   * How to read a key that another process has. Undefined where the engine waits for that process by itself, at the claim: which takes a
   * connection, so that nobody claims who has not had the turn.
   */
  readonly pollOf?: ((key: string) => Omit<PollOptions, "waitMs">) | undefined;
}

const unbounded: WhileConnected = (work) => work(new AbortController().signal);

const nobodyElse: Turn = { leave() {} };

/**
 * Waits for the turn at the keys of an attempt. Then `own` claims them, does the work and ends them, as its mode does. Resolves after the
 * engine has confirmed the final state of the keys, or has failed to; rejects as `own` does.
 */
export async function perform<Result>(
  { keys, whileConnected = unbounded }: Pick<Attempt, "keys" | "whileConnected">,
  { room, waitMs, pollOf }: WaitingRules,
  own: (turn: Turn) => Promise<Performed<Result>>,
): Promise<Performed<Result>> {
  const key = firstOf(keys);
  // Without keys there are no duplicates.
  if (key === undefined) return own(nobodyElse);
  const endsAtMs = performance.now() + waitMs;
  const entered = room.enter(key, waitMs, whileConnected);
  // Synchronously where nobody has to be waited for: a drain that begins now counts this attempt.
  const turn = isPromiseLike(entered) ? await entered : entered;
  if (!isTurn(turn)) {
    // Lease mode claims once without a turn: an operator may have decided about the key since.
    return turn === "timeout" && pollOf !== undefined ? own(nobodyElse) : unowned(turn);
  }
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one claim after the other, each behind a wait
      const performed = await own(turn);
      if (performed.status !== "in-flight" || pollOf === undefined) return performed;
      const poll = { ...pollOf(key), waitMs: endsAtMs - performance.now() };
      // oxlint-disable-next-line no-await-in-loop -- as above
      const seen = await room.untilDecided(key, poll, whileConnected);
      if (seen === "claim") continue;
      if (typeof seen === "object") turn.leave(seen);
      return unowned(seen);
    }
  } finally {
    turn.leave();
  }
}

function unowned(how: DecidedKey | "timeout" | "client-left"): Performed<never> {
  if (typeof how === "object") return how;
  return { status: how === "timeout" ? "in-flight" : how };
}

/** The key by which the attempt has its turn: the first in an order that is the same for all. */
function firstOf(keys: readonly KeyAttempt[]): string | undefined {
  const [first] = keys;
  return first && keys.reduce((least, { key }) => (key < least ? key : least), first.key);
}
