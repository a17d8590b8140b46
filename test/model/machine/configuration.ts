import type { Switch } from "./switches.ts";

/** What is explored: one key, with everything that may happen to it. */
export interface Configuration {
  /** How many requests may be under way at a time. Each place is taken again, without end. */
  readonly attempts: 2 | 3;
  readonly recovery: "rerun" | "hold";
  /**
   * `transaction`: payment and completeIn() in one transaction. `savepoint`: the same, but the careless handler undoes
   * completeIn() by a savepoint and commits the payment. `bank`: a call of somebody else's system, recorded by the guard afterwards.
   */
  readonly handler: "transaction" | "savepoint" | "bank";
  readonly hasOperator: boolean;
  /** Whether the first answer is kept, and given again for a done key. Default false. */
  readonly givesAgain?: boolean | undefined;
  /** Faults that are left out. */
  readonly without?: readonly Fault[] | undefined;
}

/**
 * `stall`: the lease ends of an owner that lives. `answered`: somebody else answers while the handler works. `timedOut`: a time-out
 * behind the guard does, where the guard has the handler's promise. `early`: a handler answers 2xx before its completeIn(). `duplicate`:
 * a claim or a decision is delivered twice. `stray`: a completeIn() is overtaken by its ROLLBACK. `reopen`: an operator takes a decision
 * back.
 */
export type Fault = "crash" | "stall" | "answered" | "timedOut" | "early" | "duplicate" | "stray" | "reopen";

/** A configuration, and the bugs that are switched on. */
export interface Rules extends Configuration {
  readonly bugs: Readonly<Partial<Record<Switch, true>>>;
}

export function may(fault: Fault, { without }: Configuration): boolean {
  return without === undefined || !without.includes(fault);
}

const transactionUnderRerun: Configuration = {
  attempts: 2,
  recovery: "rerun",
  handler: "transaction",
  hasOperator: true,
};

const transactionUnderHold: Configuration = { ...transactionUnderRerun, recovery: "hold" };

const bankUnderHold: Configuration = { ...transactionUnderHold, handler: "bank" };

const savepointUnderHold: Configuration = { ...transactionUnderHold, handler: "savepoint" };

/**
 * A third request. What arrives twice, astray or early, time-outs behind the guard and what is taken back are left to the configurations
 * with two, with it they are too many.
 */
const withThree = { attempts: 3, without: ["duplicate", "stray", "timedOut", "early", "reopen"] } as const;

/** The configurations in which a sound machine breaks nothing. Together they take every step of the machine. */
export const configurations = {
  "a transaction, under rerun": transactionUnderRerun,
  "a transaction, under hold": transactionUnderHold,
  "a call of the bank, under hold": bankUnderHold,
  "a savepoint undone, under hold": savepointUnderHold,
  // No guard mends this one when its process dies or sleeps between the payment and its 2xx: nothing is on record of it.
  "a savepoint undone, under rerun": {
    ...savepointUnderHold,
    recovery: "rerun",
    without: ["crash", "stall"],
  },
  "answers given again, a transaction, under rerun": { ...transactionUnderRerun, givesAgain: true },
  "answers given again, a call of the bank, under hold": { ...bankUnderHold, givesAgain: true },
  "three requests, a transaction, under rerun": {
    ...transactionUnderRerun,
    attempts: 3,
    hasOperator: false,
    without: ["stray"],
  },
  "three requests, a transaction and an operator, under rerun": { ...transactionUnderRerun, ...withThree },
  "three requests, a transaction, under hold": { ...transactionUnderHold, ...withThree },
  "three requests, a call of the bank, under hold": { ...bankUnderHold, ...withThree },
} as const satisfies Readonly<Record<string, Configuration>>;

export type ConfigurationName = keyof typeof configurations;
