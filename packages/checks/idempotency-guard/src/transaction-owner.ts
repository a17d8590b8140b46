import { randomUUID } from "node:crypto";
import {
  channels,
  createRequestFact,
  isGuardError,
  traces,
  type NonceClaim,
  type PublishedEvents,
  type RequestFact,
} from "@countersign/core";
import {
  createWarnOnce,
  escapeForLog,
  keyClaims,
  readOptions,
  traced,
  verdicts,
  type OptionOwner,
  type WarnOnce,
} from "@countersign/core/internal";
import type {
  Awaitable,
  DrainOptions,
  DrainReport,
  IdempotencyKeys,
  TransactionStores,
} from "@countersign/idempotency";
import {
  answerOf,
  keyNotices,
  noticeOfEnd,
  readDrainTimeout,
  recordReader,
  Transactor,
  type KeyAttempt,
  type NotRun,
  type OpenTransaction,
  type Steps,
} from "@countersign/idempotency/internal";
import type { KeptAnswer } from "./answer-record.ts";
import { givenAnswer } from "./answer.ts";
import { answerOfDone, checkIdempotencyKey, readFingerprint, type WhileConnected } from "./check.ts";
import {
  assertKeysApart,
  factoryName,
  transactionGuardTable,
  type ResolvedOwnerOptions,
  type TransactionGuardOptions,
} from "./options.ts";
import { asUnpaid, held, inFlight, refusal, reserves409 } from "./refusals.ts";
import { Replay, type ResolvedReplay } from "./replay.ts";
import type { Attempt, DoneAnswers } from "./run.ts";

/** A nonce that is claimed in the transaction of its request. */
interface DeferredNonce {
  readonly claim: NonceClaim;
  /** Throws once the signature is too old: a wait may have passed its window. */
  assertTimely(this: void): void;
  /** The refusal of a nonce that was used before. */
  replayed(this: void): Error;
}

interface TransactionAttempt {
  /** 1 to 512 characters, less those of `scope`; anything else is 400. */
  readonly key: unknown;
  /** Gives 1 to 128 printable ASCII characters. A promise is due within `storeTimeoutMs`. */
  readonly fingerprint: () => Awaitable<string>;
  readonly nonce?: DeferredNonce | undefined;
  /** Called before the handler; what it throws refuses the request. */
  readonly before?: (() => void) | undefined;
  /** Writes of the caller's own in the transaction, after the handler. */
  readonly after?: ((tx: never) => unknown) | undefined;
  /** Whether a handler that has changed no row by its `tx` holds its key (I28). False: it may rightly do so. Undefined: a warning, once. */
  readonly mustWrite?: boolean | undefined;
}

/** `context` is what the app's own function is given: its `tx` is the transaction, and a look at it is noticed. */
type TransactionHandler<Tx> = (tx: Tx, context: { readonly tx: Tx }) => unknown;

/** Runs handlers in transactions that own their keys. Made by {@link transactionOwner}. */
export interface TransactionOwner<Tx> {
  /**
   * Runs the handler in one transaction with its key and nonce; resolves to its answer once that is committed, or to that of a done key.
   * Rejects with a GuardError: 409 for a done key without one, 503 for one that another attempt has and for an engine that is away, or the
   * handler's own error.
   */
  pay(
    this: void,
    native: object,
    attempt: TransactionAttempt,
    whileConnected: WhileConnected,
    handler: TransactionHandler<Tx>,
  ): Promise<KeptAnswer>;
  /** Refuses new transactions (503, `draining`), and waits for those under way. */
  drain(this: void, options?: DrainOptions): Promise<DrainReport>;
}

type DuplicateAnswers = DoneAnswers<ResolvedReplay> & Pick<ResolvedOwnerOptions, "inFlightStatus">;

const claimed: RequestFact<true> = createRequestFact();

/** Throws an OptionError on a bad option, in the name of `owner`. */
export function transactionOwner<Tx>(
  stores: TransactionStores<Tx>,
  options: TransactionGuardOptions,
  owner: OptionOwner = factoryName,
  duplicates: DuplicateAnswers = { doneStatus: 409, inFlightStatus: 503, replay: undefined },
): TransactionOwner<Tx> {
  const resolved = readOptions(owner, transactionGuardTable, options);
  assertKeysApart(owner, resolved.scope, stores.idempotency);
  const transactor = new Transactor(stores, resolved, factoryName);
  const keys: Pick<IdempotencyKeys, "alarm" | "failure" | "notice" | "read"> = {
    ...keyNotices(factoryName),
    read: recordReader({ ...resolved, store: stores.idempotency }),
  };
  const { doneStatus, inFlightStatus } = duplicates;
  const unpaid = { keys, reserved: reserves409(duplicates) };
  const watch = new HandlerWatch(factoryName, stores);
  /** Something may have been paid whose key is held, or done: an operator has to look, whoever asks. */
  const alarm = (error: unknown, { key, req }: Attempt): void => {
    const end = isGuardError(error) && needsOperator.has(error.code) ? noticeOfEnd(error) : undefined;
    if (end !== undefined) keys.alarm({ ...end, key, req });
  };
  const replay = duplicates.replay && new Replay(duplicates.replay, resolved, keys);
  const refusing = { keys, options: { ...resolved, inFlightStatus }, doneStatus, replay };
  return {
    async pay(native, attempt, whileConnected, handler) {
      const fingerprint = await readFingerprint(attempt.fingerprint, resolved, unpaid.reserved);
      if (claimed.get(native) === true) throw refusal("idempotency-guard-twice");
      const { key } = checkIdempotencyKey(attempt.key, resolved.scope);
      const own: Attempt = { key, fingerprint, token: randomUUID(), req: native };
      verdicts.note(native, { idempotencyKey: key });
      claimed.set(native, true);
      keyClaims.mark(native);
      const { nonce, before, after, mustWrite } = attempt;
      const once = { keys: [own], nonce: nonce?.claim, req: native };
      const watched = watch.begin(mustWrite === undefined);
      const paying = { nonce, before, after, handler, mustWrite, replay, watched };
      const run = async (): Promise<Paid> => {
        try {
          return await whileConnected((left) =>
            transactor.run({ ...once, left }, (open) => payOnce(transactor, open, own, paying)),
          );
        } catch (error) {
          if (watched.hasBegun() && !isOfTransaction(error)) return { error };
          throw error;
        }
      };
      let result: Paid;
      try {
        result = await observed(own, run);
      } catch (error) {
        alarm(error, own);
        throw asUnpaid(error, own, unpaid);
      }
      if (result === "nonce-seen") throw nonce?.replayed() ?? inFlight(refusing);
      if (result === "client-left") throw refusal("request-aborted");
      if (result === "in-flight") throw inFlight(refusing);
      if ("error" in result) throw asUnpaid(result.error, own, unpaid);
      if ("unwritten" in result) {
        alarm(result.unwritten, own);
        throw result.unwritten;
      }
      if ("value" in result) {
        const { answer, notKept } = result.value;
        watched.committed(native);
        if (notKept !== undefined) replay?.notKept(own, notKept);
        return answer;
      }
      if (result.status === "held") throw held(refusing, own, result);
      if (result.status === "in-flight") throw inFlight(refusing);
      return answerOfDone(refusing, { attempt: own, fingerprint: result.fingerprint });
    },
    async drain(drainOptions) {
      return { keys: await transactor.drain(readDrainTimeout(drainOptions, factoryName)), claims: 0 };
    },
  };
}

/** The run as one trace of the key, and its end on `countersign:settled`. Costs nothing without subscribers. */
async function observed({ key, req = {} }: KeyAttempt, run: () => Promise<Paid>): Promise<Paid> {
  if (!traces.claim.hasSubscribers && !channels.settled.hasSubscribers) return run();
  const trace: PublishedEvents["claim"] = { guard: factoryName, key: escapeForLog(key, 256), req };
  const startedAtMs = performance.now();
  const result = await traced(traces.claim, trace, { work: run, outcomeOf: claimOutcome });
  if (typeof result === "string" || "status" in result) return result;
  const outcome = "value" in result ? "done" : "error" in result ? "released" : "held";
  const ownedMs = performance.now() - startedAtMs;
  channels.settled.publish({ ...trace, outcome, ownedMs } satisfies PublishedEvents["settled"]);
  return result;
}

function claimOutcome(result: Paid): string {
  if (typeof result === "string") return result === "in-flight" ? result : "error";
  return "status" in result ? result.status : "acquired";
}

type Paid = NotRun | NotBegun | Ended;

/** `error`: the handler's own. `unwritten`: the refusal of a handler that has changed no row, whose key is held. */
type Ended = { readonly value: Answered } | { readonly error: unknown } | { readonly unwritten: Error };

/** Codes of requests that leave a key for an operator: held, or in a state that the store did not tell. */
const needsOperator: ReadonlySet<string> = new Set([
  "nothing-written",
  "transaction-held",
  "transaction-unknown",
]);

const ofTransaction = /^(?:transaction-|commit-unknown$|draining$)/;

function isOfTransaction(error: unknown): boolean {
  return isGuardError(error) && ofTransaction.test(error.code);
}

interface Answered {
  readonly answer: KeptAnswer;
  /** Why it cannot be given again. */
  readonly notKept?: unknown;
}

type NotBegun = Exclude<OpenTransaction<unknown>["begun"]["keys"][number], { readonly status: "begun" }>;

interface Paying<Tx> {
  readonly nonce: DeferredNonce | undefined;
  readonly before: TransactionAttempt["before"];
  readonly after: TransactionAttempt["after"];
  readonly handler: TransactionHandler<Tx>;
  readonly mustWrite: boolean | undefined;
  readonly replay: Replay | undefined;
  readonly watched: WatchedHandler<Tx>;
}

function* payOnce<Tx>(
  transactor: Transactor<Tx>,
  { tx, begun, keys }: OpenTransaction<Tx>,
  attempt: KeyAttempt,
  { nonce, before, after, handler, mustWrite, replay, watched }: Paying<Tx>,
): Steps<Ended | NotBegun> {
  const [state] = begun.keys;
  const [key] = keys;
  if (state === undefined || key === undefined) throw new TypeError("the store gave no answer to a key");
  // Committed without a handler: the nonce stays.
  if (state.status !== "begun") return state;
  nonce?.assertTimely();
  before?.();
  let hasWritten = true;
  const tell =
    mustWrite === true || watched.counts
      ? (written: boolean): void => void (hasWritten = written)
      : undefined;
  const last = function* last(): Steps<void> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller's own stores give this transaction
    if (mustWrite !== true || hasWritten) yield* answerOf(after?.(tx as never));
  };
  const run = { tell, after: after && last };
  const answer = yield* transactor.handle(tx, [key], run, function* pay(): Steps<KeptAnswer> {
    return givenAnswer(yield* answerOf(handler(tx, watched.contextOf(tx))));
  });
  if (mustWrite === true && !hasWritten) return { unwritten: yield* transactor.holdUnwritten(tx, [key]) };
  watched.told(hasWritten);
  if (replay === undefined) return { value: { answer } };
  // With the token of this run, by which the answer of a done key is found.
  const own: KeyAttempt = { ...attempt, ...key };
  let record: Buffer;
  try {
    const { status, headers, body } = answer;
    record = replay.recordOf(own, { status, rawHeaders: headers.flat(), body });
  } catch (notKept) {
    return { value: { answer, notKept } };
  }
  // I15: after what proves that the transaction still has the key.
  yield* transactor.lastStep(() => replay.keepIn(tx, own, record));
  return { value: { answer } };
}

const unused =
  "a handler has ended without taking tx: whatever it wrote has committed without the key, and can be written again after a crash; " +
  "write it by tx";
const unwritten =
  "a handler has ended without writing a row by tx, and its caller was told of a success: look for a missing await or execute(), or for " +
  "what another connection wrote";

/** Notices, once, that what a handler wrote is not in its transaction. */
class HandlerWatch<Tx> {
  readonly #warnOnce: WarnOnce;
  readonly #mayMiss: boolean;

  constructor(factory: string, { transactions }: TransactionStores<Tx>) {
    this.#warnOnce = createWarnOnce(factory);
    // SQLite has one connection: what is written there is in the transaction.
    this.#mayMiss = transactions.mode === "async";
  }

  /** `warns`: whether a handler that writes nothing is only noticed. */
  begin(warns: boolean): WatchedHandler<Tx> {
    let isTaken = false;
    let isIdle = false;
    let hasBegun = false;
    return {
      hasBegun: () => hasBegun,
      counts: warns && !this.#warnOnce.has("transaction-unused"),
      contextOf: (tx) => {
        hasBegun = true;
        return {
          get tx() {
            isTaken = true;
            return tx;
          },
        };
      },
      told: (hasWritten) => {
        isIdle = !hasWritten;
      },
      committed: (req) => {
        if (!warns) return;
        const message = this.#mayMiss && !isTaken ? unused : isIdle ? unwritten : undefined;
        if (message !== undefined) this.#warnOnce({ code: "transaction-unused", message, req });
      },
    };
  }
}

interface WatchedHandler<Tx> {
  readonly hasBegun: () => boolean;
  /** Whether it has to be known if the handler has written a row. */
  readonly counts: boolean;
  /** What the handler is given: a look at `tx` is noticed. */
  readonly contextOf: (tx: Tx) => { readonly tx: Tx };
  readonly told: (hasWritten: boolean) => void;
  readonly committed: (req: object) => void;
}
