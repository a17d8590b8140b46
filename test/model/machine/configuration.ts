import type { Switch } from "./switches.ts";

/** What is explored: one key, with everything that may happen to it. */
export interface Configuration {
  /** How many requests may be under way at a time. Each place is taken again, without end. */
  readonly attempts: 2 | 3;
  readonly recovery: "rerun" | "hold";
  /** A call of somebody else's system, recorded by the guard afterwards. `idempotent`: that system pays once, however often it is asked. */
  readonly handler: "bank" | "idempotent";
  readonly hasOperator: boolean;
  /** Whether the first answer is kept, and given again for a done key. Default false. */
  readonly givesAgain?: boolean | undefined;
  /** Faults that are left out. */
  readonly without?: readonly Fault[] | undefined;
}

/**
 * `stall`: the lease ends of an owner that lives. `answered`: somebody else answers while the handler works. `timedOut`: a time-out
 * behind the guard does, where the guard has the handler's promise. `duplicate`: a claim or a decision is delivered twice. `reopen`: an
 * operator takes a decision back.
 */
export type Fault = "crash" | "stall" | "answered" | "timedOut" | "duplicate" | "reopen";

/** A configuration, and the bugs that are switched on. */
export interface Rules extends Configuration {
  readonly bugs: Readonly<Partial<Record<Switch, true>>>;
}

export function may(fault: Fault, { without }: Configuration): boolean {
  return without === undefined || !without.includes(fault);
}

const bankUnderHold: Configuration = { attempts: 2, recovery: "hold", handler: "bank", hasOperator: true };

const idempotentUnderRerun: Configuration = { ...bankUnderHold, recovery: "rerun", handler: "idempotent" };

/**
 * A third request. What arrives twice, time-outs behind the guard and what is taken back are left to the configurations with two, with it
 * they are too many.
 */
const withThree = { attempts: 3, without: ["duplicate", "timedOut", "reopen"] } as const;

/** The configurations in which a sound machine breaks nothing. Together they take every step of the machine. */
export const configurations = {
  "an idempotent call, under rerun": idempotentUnderRerun,
  "a call of the bank, under hold": bankUnderHold,
  "answers given again, an idempotent call, under rerun": { ...idempotentUnderRerun, givesAgain: true },
  "answers given again, a call of the bank, under hold": { ...bankUnderHold, givesAgain: true },
  "three requests, an idempotent call, under rerun": {
    ...idempotentUnderRerun,
    attempts: 3,
    hasOperator: false,
  },
  "three requests, an idempotent call and an operator, under rerun": {
    ...idempotentUnderRerun,
    ...withThree,
  },
  "three requests, a call of the bank, under hold": { ...bankUnderHold, ...withThree },
} as const satisfies Readonly<Record<string, Configuration>>;

export type ConfigurationName = keyof typeof configurations;
