import { randomUUID } from "node:crypto";
import { createRequestFact, type RequestFact } from "@countersign/core";
import {
  keyClaims,
  readOptions,
  verdicts,
  type OptionOwner,
  type Replacement,
} from "@countersign/core/internal";
import type { DrainOptions, DrainReport, IdempotencyKeys, TransactionStores } from "@countersign/idempotency";
import {
  keyNotices,
  LeaseOwner,
  readDrainTimeout,
  recordReader,
  TransactionOwner,
  type DecidedKey,
  type Performed,
} from "@countersign/idempotency/internal";
import type { KeptAnswer } from "./answer-record.ts";
import {
  assertKeysApart,
  factoryName,
  transactionGuardTable,
  type ResolvedOwnerOptions,
  type TransactionGuardOptions,
} from "./options.ts";
import { OwnedRequest } from "./owned-request.ts";
import { held, inFlight, refusal, reserves409, reused, type Refusing } from "./refusals.ts";
import { Replay, type ResolvedReplay } from "./replay.ts";
import { checkIdempotencyKey, readFingerprint } from "./request-key.ts";
import type { Handling, KeyedRequest, RequestAttempt } from "./keyed-request.ts";
import { TransactionHandlers, type TransactionWork } from "./transaction-handler.ts";

/** The response to send: a whole one, or the handler's own, which a replacement takes the place of. */
export type Performance =
  | { readonly response: KeptAnswer }
  | { readonly replacement: Replacement | undefined };

export interface Drainable {
  /** Refuses new claims (503, `draining`), waits until the keys are settled, and resolves to what is left. For the process's end. */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

/** Owns the keys of requests around their handlers, in one of the two modes. `Needs`: what it calls of the adapter. */
export interface RequestOwner<Work, Needs extends keyof Handling> extends Drainable {
  /**
   * Owns the key of a request while its handler runs, and resolves to the response to send. Rejects with a GuardError: 409 for a done key, 503
   * for one that runs or is held, or a silent store, 400 for an invalid key; in transaction mode with the handler's own error, too.
   */
  perform(
    this: void,
    native: object,
    request: KeyedRequest & Work,
    handling: Pick<Handling, Needs>,
  ): Promise<Performance>;
}

/** What a duplicate is told. */
export interface Duplicates extends Pick<ResolvedOwnerOptions, "inFlightStatus"> {
  readonly replay: ResolvedReplay | undefined;
  /** The status for a done key without a kept response. */
  readonly doneStatus: 409 | 200 | 204;
}

/** On the payout's wire: 409 says "paid", and nothing else does. */
const payoutDuplicates: Duplicates = { doneStatus: 409, inFlightStatus: 503, replay: undefined };

/** Lease mode: the handler acts elsewhere. */
export function leaseRequests(
  resolved: ResolvedOwnerOptions,
  duplicates: Duplicates = payoutDuplicates,
): RequestOwner<unknown, "whileConnected" | "begin"> {
  const leases = new LeaseOwner(resolved);
  const { keys } = leases;
  const replay = duplicates.replay && new Replay(duplicates.replay, resolved, keys);
  const told = { options: { ...resolved, ...duplicates }, keys, replay };
  const isReserved = reserves409(duplicates);
  const { recovery, leaseMs } = resolved;
  return {
    async perform(native, request, { whileConnected, begin }) {
      const { attempt, sentKey } = await attemptOf(native, request, resolved, isReserved);
      const ofHandler = { sentKey, keptBytes: replay?.limitBytes, leaseMs };
      const performed = await leases.perform(
        { key: attempt, before: request.before, whileConnected },
        { recovery, isReserved },
        async (run) => {
          markClaimed(native);
          const owned = new OwnedRequest(run, ofHandler);
          const { given, ...end } = await begin(owned);
          owned.responded();
          return replay === undefined ? end : { ...end, beforeDone: () => replay.keep(attempt, given) };
        },
      );
      if (performed.status === "ended") return { replacement: performed.result.replacement };
      return { response: await responseTo(performed, attempt, told) };
    },
    drain: (drainOptions) => leases.drain(drainOptions),
  };
}

/** Transaction mode: the handler gets the transaction of its key. Throws an OptionError on a bad option, in the name of `owner`. */
export function transactionRequests<Tx>(
  stores: TransactionStores<Tx>,
  options: TransactionGuardOptions,
  owner: OptionOwner = factoryName,
  duplicates: Duplicates = payoutDuplicates,
): RequestOwner<TransactionWork<Tx>, "whileConnected" | "around"> {
  const resolved = readOptions(owner, transactionGuardTable, options);
  assertKeysApart(owner, resolved.scope, stores.idempotency);
  const keys: Pick<IdempotencyKeys, "alarm" | "failure" | "notice" | "read"> = {
    ...keyNotices(factoryName),
    read: recordReader({ ...resolved, store: stores.idempotency }),
  };
  const replay = duplicates.replay && new Replay(duplicates.replay, resolved, keys);
  const told = { options: { ...resolved, ...duplicates }, keys, replay };
  const isReserved = reserves409(duplicates);
  const transactions = new TransactionOwner(stores, resolved, factoryName);
  const handlers = new TransactionHandlers({ transactions, stores, keys, replay, isReserved });
  return {
    async perform(native, request, { whileConnected, around }) {
      const { attempt } = await attemptOf(native, request, resolved, isReserved);
      markClaimed(native);
      const performed = await handlers.perform(attempt, request, { whileConnected, around });
      if (performed.status === "ended") return { response: performed.result };
      if (performed.status === "nonce-seen" && request.nonce !== undefined) throw request.nonce.replayed();
      return { response: await responseTo(performed, attempt, told) };
    },
    async drain(drainOptions) {
      return { keys: await transactions.drain(readDrainTimeout(drainOptions, factoryName)), claims: 0 };
    },
  };
}

const claimed: RequestFact<true> = createRequestFact();

/** A second guard on the route would claim the key again. */
function markClaimed(native: object): void {
  claimed.set(native, true);
  keyClaims.mark(native);
}

/** Checks key and fingerprint of a request, in either mode alike. Rejects with a GuardError for what no store could keep. */
async function attemptOf(
  native: object,
  { key: given, sentKey, fingerprint: fingerprintOf }: KeyedRequest,
  options: Pick<ResolvedOwnerOptions, "scope" | "storeTimeoutMs" | "retryAfterSeconds">,
  isReserved: boolean,
): Promise<{ readonly attempt: RequestAttempt; readonly sentKey: string }> {
  if (claimed.get(native) === true) throw refusal("idempotency-guard-twice");
  const checked = checkIdempotencyKey(given, options.scope);
  const fingerprint = await readFingerprint(fingerprintOf, options, isReserved);
  const { key } = checked;
  verdicts.note(native, { idempotencyKey: key });
  const attempt = { key, fingerprint, token: randomUUID(), req: native };
  return { attempt, sentKey: sentKey ?? checked.sentKey };
}

interface Told extends Refusing {
  readonly options: Refusing["options"] & Pick<Duplicates, "doneStatus">;
  readonly replay: Replay | undefined;
}

/** The response to a request that does not own its key: the first response of a done one, if that is kept. Throws every refusal. */
async function responseTo(
  performed: Exclude<Performed<unknown>, { readonly status: "ended" }>,
  attempt: RequestAttempt,
  told: Told,
): Promise<KeptAnswer> {
  switch (performed.status) {
    case "client-left":
      throw refusal("request-aborted");
    case "held":
      throw held(told, attempt, performed);
    case "done":
      return responseOfDone(performed, attempt, told);
    case "in-flight":
    case "nonce-seen":
      break;
  }
  throw inFlight(told);
}

async function responseOfDone(
  { fingerprint }: Extract<DecidedKey, { readonly status: "done" }>,
  attempt: RequestAttempt,
  told: Told,
): Promise<KeptAnswer> {
  if (fingerprint !== attempt.fingerprint) throw reused(told, attempt);
  const kept = await told.replay?.find(attempt.key, attempt.req);
  if (kept !== undefined) return { ...kept, headers: [...kept.headers, ["idempotency-replayed", "true"]] };
  const { doneStatus } = told.options;
  if (doneStatus === 409) throw refusal("already-processed");
  return { status: doneStatus, headers: [], body: Buffer.alloc(0) };
}
