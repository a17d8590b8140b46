import { channels, isGuardError, traces, type NonceClaim, type PublishedEvents } from "@countersign/core";
import { createWarnOnce, escapeForLog, traced, type WarnOnce } from "@countersign/core/internal";
import type { IdempotencyKeys, TransactionStores } from "@countersign/idempotency";
import {
  answerOf,
  noticeForOperator,
  type KeyAttempt,
  type OpenTransaction,
  type Performed,
  type Steps,
  type TransactionOwner,
} from "@countersign/idempotency/internal";
import type { KeptAnswer } from "./answer-record.ts";
import { givenAnswer } from "./answer.ts";
import { factoryName } from "./options.ts";
import type { Handling, KeyedRequest, RequestAttempt } from "./keyed-request.ts";
import { asUnpaid } from "./refusals.ts";
import type { Replay } from "./replay.ts";

/** A nonce that is claimed in the transaction of its request. */
interface DeferredNonce {
  readonly claim: NonceClaim;
  /** Throws once the signature is too old: a wait may have passed its window. */
  assertTimely(this: void): void;
  /** The refusal of a nonce that was used before. */
  replayed(this: void): Error;
}

/** What a transaction does for a request. */
export interface TransactionWork<Tx> {
  readonly nonce?: DeferredNonce | undefined;
  /** The app's own function: its `tx` is the transaction, and a look at it is noticed. */
  readonly handle: (context: { readonly tx: Tx }) => unknown;
  /** Writes of the caller's own in the transaction, after the handler. */
  readonly after?: ((tx: Tx) => unknown) | undefined;
  /** Whether a handler that has changed no row by its `tx` holds its key (I28). False: it may rightly do so. Undefined: a warning, once. */
  readonly mustWrite?: boolean | undefined;
}

interface TransactionHandlersInit<Tx> {
  readonly transactions: TransactionOwner<Tx>;
  readonly stores: TransactionStores<Tx>;
  readonly keys: Pick<IdempotencyKeys, "alarm">;
  readonly replay: Replay | undefined;
  /** Whether only a done key may be answered 409. */
  readonly isReserved: boolean;
}

/** How the transaction of a request has ended that it was begun for. */
type Ended =
  | { readonly answer: KeptAnswer; /** Why it cannot be given again. */ readonly notKept?: unknown }
  /** The handler's own error, after the rollback. */
  | { readonly error: unknown }
  /** The refusal of a handler that has changed no row, whose key is held. */
  | { readonly unwritten: Error }
  /** Of a key that another attempt has, or had: the nonce was committed without a handler. */
  | { readonly refused: NotBegun };

type NotBegun = Exclude<OpenTransaction<unknown>["begun"]["keys"][number], { readonly status: "begun" }>;

/** Runs the handlers of requests in the transactions that own their keys. */
export class TransactionHandlers<Tx> {
  readonly #init: TransactionHandlersInit<Tx>;
  readonly #watch: TxWatch<Tx>;

  constructor(init: TransactionHandlersInit<Tx>) {
    this.#init = init;
    this.#watch = new TxWatch(factoryName, init.stores);
  }

  /** Resolves to the response once that is committed. Rejects with the handler's own error, or with why nothing has committed. */
  async perform(
    attempt: RequestAttempt,
    work: KeyedRequest & TransactionWork<Tx>,
    handling: Pick<Handling, "whileConnected" | "around">,
  ): Promise<Performed<KeptAnswer>> {
    const { keys, isReserved, replay } = this.#init;
    const watched = this.#watch.begin(work.mustWrite === undefined);
    let performed: Performed<Ended>;
    try {
      performed = await observed(attempt, () => this.#run(attempt, work, handling, watched));
    } catch (error) {
      this.#alarm(error, attempt);
      throw asUnpaid(error, attempt, { keys, reserved: isReserved });
    }
    if (performed.status !== "ended") return performed;
    const { result: ended } = performed;
    if ("refused" in ended) return ended.refused;
    if ("error" in ended) throw asUnpaid(ended.error, attempt, { keys, reserved: isReserved });
    if ("unwritten" in ended) {
      this.#alarm(ended.unwritten, attempt);
      throw ended.unwritten;
    }
    watched.committed(attempt.req);
    if (ended.notKept !== undefined) replay?.notKept(attempt, ended.notKept);
    return { status: "ended", result: ended.answer };
  }

  async #run(
    attempt: RequestAttempt,
    work: KeyedRequest & TransactionWork<Tx>,
    { whileConnected, around }: Pick<Handling, "whileConnected" | "around">,
    watched: WatchedHandler<Tx>,
  ): Promise<Performed<Ended>> {
    const wanted = { keys: [attempt], nonce: work.nonce?.claim, req: attempt.req, whileConnected };
    try {
      return await this.#init.transactions.perform(wanted, (open) =>
        this.#inTransaction(attempt, open, { ...work, around, watched }),
      );
    } catch (error) {
      if (watched.hasBegun() && !isOfTransaction(error)) return { status: "ended", result: { error } };
      throw error;
    }
  }

  /** Something may have been paid whose key is held, or done: an operator has to look, whoever asks. */
  #alarm(error: unknown, { key, req }: KeyAttempt): void {
    const end = noticeForOperator(error);
    if (end !== undefined) this.#init.keys.alarm({ ...end, key, req });
  }

  *#inTransaction(
    attempt: RequestAttempt,
    open: OpenTransaction<Tx>,
    {
      nonce,
      before,
      handle,
      after,
      mustWrite,
      around = (call) => call(),
      watched,
    }: KeyedRequest &
      TransactionWork<Tx> &
      Pick<Handling, "around"> & { readonly watched: WatchedHandler<Tx> },
  ): Steps<Ended> {
    const { transactions, replay } = this.#init;
    const { tx } = open;
    const [state] = open.begun.keys;
    const [key] = open.keys;
    if (state === undefined || key === undefined) throw new TypeError("the store gave no answer to a key");
    // Committed without a handler: the nonce stays.
    if (state.status !== "begun") return { refused: state };
    nonce?.assertTimely();
    before?.();
    let hasWritten = true;
    const tell =
      mustWrite === true || watched.counts
        ? (written: boolean): void => void (hasWritten = written)
        : undefined;
    const last = function* last(): Steps<void> {
      if (mustWrite !== true || hasWritten) yield* answerOf(after?.(tx));
    };
    const run = { tell, after: after && last };
    const answer = yield* transactions.handle(open, [key], run, function* pay(): Steps<KeptAnswer> {
      return givenAnswer(yield* answerOf(around(() => handle(watched.contextOf(tx)))));
    });
    if (mustWrite === true && !hasWritten) return { unwritten: yield* transactions.holdUnwritten(tx, [key]) };
    watched.told(hasWritten);
    if (replay === undefined) return { answer };
    // With the token of this run, by which the response of a done key is found.
    const own: KeyAttempt = { ...attempt, ...key };
    let record: Buffer;
    try {
      const { status, headers, body } = answer;
      record = replay.recordOf(own, { status, rawHeaders: headers.flat(), body });
    } catch (notKept) {
      return { answer, notKept };
    }
    // I15: after what proves that the transaction still has the key.
    yield* transactions.lastStep(() => replay.keepIn(tx, own, record));
    return { answer };
  }
}

/** The run as one trace of the key, and its end on `countersign:settled`. Costs nothing without subscribers. */
async function observed(
  { key, req }: RequestAttempt,
  run: () => Promise<Performed<Ended>>,
): Promise<Performed<Ended>> {
  if (!traces.claim.hasSubscribers && !channels.settled.hasSubscribers) return run();
  const trace: PublishedEvents["claim"] = { guard: factoryName, key: escapeForLog(key, 256), req };
  const startedAtMs = performance.now();
  const performed = await traced(traces.claim, trace, { work: run, outcomeOf: claimOutcome });
  const outcome = performed.status === "ended" ? settledAs(performed.result) : undefined;
  if (outcome === undefined) return performed;
  const ownedMs = performance.now() - startedAtMs;
  channels.settled.publish({ ...trace, outcome, ownedMs } satisfies PublishedEvents["settled"]);
  return performed;
}

function claimOutcome(performed: Performed<Ended>): string {
  if (performed.status === "ended") {
    const { result: ended } = performed;
    return "refused" in ended ? ended.refused.status : "acquired";
  }
  return performed.status === "nonce-seen" || performed.status === "client-left" ? "error" : performed.status;
}

function settledAs(ended: Ended): PublishedEvents["settled"]["outcome"] | undefined {
  if ("refused" in ended) return undefined;
  if ("answer" in ended) return "done";
  return "error" in ended ? "released" : "held";
}

const ofTransaction = /^(?:transaction-|commit-unknown$|draining$)/;

function isOfTransaction(error: unknown): boolean {
  return isGuardError(error) && ofTransaction.test(error.code);
}

const unused =
  "a handler has ended without taking tx: whatever it wrote has committed without the key, and can be written again after a crash; " +
  "write it by tx";
const unwritten =
  "a handler has ended without writing a row by tx, and its caller was told of a success: look for a missing await or execute(), or for " +
  "what another connection wrote";

/** Notices, once, that what a handler wrote is not in its transaction. */
class TxWatch<Tx> {
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
