import type {
  ClosedStatements,
  TransactionBegun,
  TransactionClaim,
  TransactionFault,
  TransactionStore,
} from "@countersign/idempotency";
import { sleep } from "@countersign/test-support/runs/eventually.ts";
import { answerOf, type Steps } from "../../src/transactions/steps.ts";
import type { OpenTransaction, TransactionAttempt } from "../../src/transactions/transaction-attempt.ts";
import { TransactionOwner } from "../../src/transactions/transaction-owner.ts";

export type Step =
  | "connect"
  | "begin"
  | "work"
  | "keep"
  | "probe"
  | "free"
  | "rollback"
  | "commit"
  | "claim"
  | "hold";

/** What a call does, by its number from 1: an error to throw, milliseconds or a promise to wait for, or nothing. */
export type Script = Partial<Record<Step, (call: number) => unknown>>;

const tx = { name: "tx" };
export const keys = [{ key: "k", token: "t", fingerprint: "f" }];
export const nonce = { scope: "s", nonce: "n", token: "t", retainMs: 1_000 };
const fresh: TransactionBegun = { nonce: "fresh", keys: [{ status: "begun" }] };

class EngineError extends Error {
  readonly fault: TransactionFault;
  constructor(fault: TransactionFault) {
    super(fault);
    this.fault = fault;
  }
}

export const is = (fault: TransactionFault) => () => new EngineError(fault);

const usual = {
  waitMs: 0,
  storeTimeoutMs: 20_000,
  idleTimeoutMs: 1_000,
  transactionTimeoutMs: 60_000,
  maxWaiters: 10,
  retryAfterSeconds: 7,
  recovery: "hold",
} as const;

interface Engine extends Partial<Record<keyof typeof usual & `${string}Ms`, number>> {
  /** By the call of begin() where it is a list. */
  readonly begun?: TransactionBegun | readonly TransactionBegun[];
  readonly mode?: "async" | "sync";
  /** How the gate says that the handler has left its statements. */
  readonly closed?: ClosedStatements;
  /** What the engine has counted of the handler. */
  readonly written?: number;
}

/** An owner whose handler and whose engine, named `scripted`, do as the script says. */
export function scripted(
  script: Script,
  { begun = fresh, mode = "async", closed, written, ...times }: Engine = {},
) {
  const calls: Partial<Record<Step, number>> = {};
  const log: string[] = [];
  /** What became of the gate, in order. */
  const gate: string[] = [];
  /** What each begin() was asked for, and each claim of a nonce alone. */
  const claims: TransactionClaim[] = [];
  const aloneTokens: string[] = [];
  /** Whether each handler has written a row. */
  const told: boolean[] = [];
  const play = (step: Step): unknown => {
    const call = (calls[step] = (calls[step] ?? 0) + 1);
    log.push(step);
    const does = script[step]?.(call);
    if (does instanceof Error) throw does;
    return typeof does === "number" ? sleep(does) : does;
  };
  /** Answers behind the step, in one turn where the engine does. */
  const played = <T>(step: Step, answer: T): T | Promise<T> => {
    const does = play(step);
    return mode === "sync" ? answer : Promise.resolve(does).then(() => answer);
  };
  const transactions: TransactionStore<typeof tx> = {
    engine: "scripted",
    mode,
    retentionMs: 1,
    async run(work) {
      await play("connect");
      let result: Awaited<ReturnType<typeof work>>;
      try {
        result = await work(tx);
      } catch (error) {
        await play("rollback");
        throw error;
      }
      await play("commit");
      return result;
    },
    begin(_tx, claim) {
      claims.push(claim);
      const call = (calls.begin ?? 0) + 1;
      return played("begin", Array.isArray(begun) ? (begun[call - 1] ?? fresh) : begun);
    },
    openGate: () => void gate.push("open"),
    ...(mode === "async" && {
      closeGate(_tx, succeeded) {
        gate.push(succeeded ? "close" : "close, failed");
        return Promise.resolve(closed ?? { unanswered: 0, hasWritten: false, idleCommands: 0 });
      },
    }),
    keep: () => played("keep", undefined),
    assertOpen: () => played("probe", undefined),
    free: () => played("free", undefined),
    async hold(given) {
      const held = await play("hold");
      return new Set(held === "held" ? given.map(({ key }) => key) : []);
    },
    ...(written !== undefined && { written: () => written }),
    faultOf: (error) => (error instanceof EngineError ? error.fault : undefined),
  };
  const nonces = {
    async claim({ token }: { readonly token: string }) {
      aloneTokens.push(token);
      return (await play("claim")) === "seen" ? ("seen" as const) : ("fresh" as const);
    },
  };
  const owner = new TransactionOwner({ transactions, nonces }, { ...usual, ...times });
  /** What the handler gave, or why it did not run. */
  const run = async (attempt: TransactionAttempt = { keys, nonce }): Promise<string> => {
    const performed = await owner.perform(
      attempt,
      function* pay(open: OpenTransaction<typeof tx>): Steps<string> {
        return yield* owner.handle(
          open,
          open.keys,
          { tell: (hasWritten) => told.push(hasWritten) },
          function* work() {
            yield* answerOf(play("work"));
            return "paid";
          },
        );
      },
    );
    return performed.status === "ended" ? performed.result : performed.status;
  };
  return { owner, run, log, calls, gate, claims, aloneTokens, told };
}
