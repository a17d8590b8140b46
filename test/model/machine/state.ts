import type { Rules } from "./configuration.ts";
import type { Step } from "./explorer.ts";

/** In place of the index of an attempt: one that is over and forgotten, an operator, or none. */
export const nobody = -1;

/** The record of the one key, as its store has it. Absent is free: of a key that never was, the fence is 0. */
export interface KeyRecord {
  readonly state: "free" | "running" | "held" | "done";
  readonly owner: number;
  readonly fence: number;
  /** Whether the lease has ended; of a run alone. */
  readonly isExpired: boolean;
  /** What its owner has said may follow once its lease has ended. */
  readonly recovery: "rerun" | "hold";
  /** Whether an operator has left it so, and nobody has had it since; of a done or free key alone. */
  readonly isDecided: boolean;
  /** From whom an operator took it: the attempt of the decision's fence. A store must not give it back to that one's token. */
  readonly formerOwner: number;
  /** Known to the invariants alone: how many owners the key has had, and the attempt that ended it. */
  readonly generation: number;
  readonly endedBy: number;
  /** What the store of answers has under the record's token when its owner is forgotten. */
  readonly orphanAnswer: FoundAnswer;
}

/** For who looks under the token of the record: no answer, that of the attempt that ended the key, or another one. */
export type FoundAnswer = "none" | "own" | "other";

export const guards = [
  "none",
  "claiming",
  "abandoning",
  "running",
  "outlived",
  "completing",
  "releasing",
  "holding",
  "takingBack",
  "over",
  "dead",
] as const;
export const handlers = ["none", "begun", "unsure", "paid", "ended"] as const;

/** One request with the guard that serves it and the handler that it began, and what is still on its way of them. */
export interface Attempt {
  /**
   * What the guard does. `none`: the place is free for a request. `abandoning`: gives up a claim without a usable answer.
   * `outlived`: somebody else has ended its response, and it leaves the key to the end of its handler or of its lease. `completing`, `releasing`, `holding`: sends that step until it hears an answer.
   * `takingBack`: may have paid without the key, and takes back an operator's decision that no money has moved. A message that is late is in no way different
   * from a process that stands still before it sends: nothing bounds how long any of these takes.
   */
  readonly guard: (typeof guards)[number];
  /**
   * Where the handler stands. `unsure`: nobody told it whether its effect has happened. `paid`: it was told so, or says so. `ended` and `none`
   * work no more, or never did.
   */
  readonly handler: (typeof handlers)[number];
  /** Whether a claim is on its way to the store. */
  readonly isClaimSent: boolean;
  readonly isGranted: boolean;
  /** Whether the lease ended before the handler began, by the guard's own clock. */
  readonly isTooLate: boolean;
  readonly isAborted: boolean;
  /** Whether an operator has taken the key from it. */
  readonly isOverruled: boolean;
  /** Whether a claim was decided and is not written yet: in a store that takes two steps for it. */
  readonly isDecided: boolean;
  /** Of its 2xx, in the store of answers; `failed` is none, too. */
  readonly answer: "none" | "kept" | "failed";
}

/** What an operator has decided about the owner that they saw, and sent or is about to send. */
export interface Decision {
  /** `paysOnOk`: done, and the operator pays by hand once the store has taken it. `reopened`: the decision before is taken back. */
  readonly outcome: "released" | "done" | "paysOnOk" | "reopened";
  readonly fence: number;
  readonly generation: number;
}

export interface State {
  readonly record: KeyRecord;
  readonly attempts: readonly Attempt[];
  readonly decision: Decision | undefined;
  readonly payments: number;
}

/** A step, and what it told whoever waited for it. */
export interface KeyStep extends Step {
  readonly told?: "acquired" | "begins" | "ok" | "lost" | "2xx" | "409" | "503" | "again" | undefined;
  /** The decision of an operator that the store executes. */
  readonly decides?: Decision | undefined;
  /** Whose answer is given again. */
  readonly answer?: FoundAnswer | undefined;
}

export type Take = (step: KeyStep, after: State) => void;

export const idle: Attempt = {
  guard: "none",
  handler: "none",
  isClaimSent: false,
  isGranted: false,
  isTooLate: false,
  isAborted: false,
  isOverruled: false,
  isDecided: false,
  answer: "none",
};

export function initialState(attempts: number): State {
  const record: KeyRecord = {
    state: "free",
    owner: nobody,
    fence: 0,
    isExpired: false,
    recovery: "hold",
    isDecided: false,
    formerOwner: nobody,
    generation: 0,
    endedBy: nobody,
    orphanAnswer: "none",
  };
  return { record, attempts: Array.from({ length: attempts }, () => idle), decision: undefined, payments: 0 };
}

export function isWorking({ handler }: Attempt): boolean {
  return handler !== "none" && handler !== "ended";
}

export function isAlive({ guard }: Attempt): boolean {
  return guard !== "none" && guard !== "dead";
}

/** A payment. An idempotent system pays once, whoever asks. */
export function pay(state: State, { handler }: Pick<Rules, "handler">): State {
  return { ...state, payments: handler === "idempotent" ? 1 : state.payments + 1 };
}

export function change(state: State, by: number, changes: Partial<Attempt>): State {
  const attempts = state.attempts.slice();
  attempts[by] = merge(attempts[by]!, changes);
  return { record: state.record, attempts, decision: state.decision, payments: state.payments };
}

// Most of the time goes into copies: member by member they take a fifth of what `...` takes.
function merge(attempt: Attempt, changes: Partial<Attempt>): Attempt {
  const handler = changes.handler ?? attempt.handler;
  const hasEnded = handler === "ended" || handler === "none";
  return {
    guard: changes.guard ?? attempt.guard,
    handler,
    isClaimSent: changes.isClaimSent ?? attempt.isClaimSent,
    isGranted: changes.isGranted ?? attempt.isGranted,
    isTooLate: changes.isTooLate ?? attempt.isTooLate,
    isDecided: changes.isDecided ?? attempt.isDecided,
    answer: changes.answer ?? attempt.answer,
    // Nobody asks any more.
    isAborted: !hasEnded && (changes.isAborted ?? attempt.isAborted),
    isOverruled: !hasEnded && (changes.isOverruled ?? attempt.isOverruled),
  };
}

/** The same, and the place is free again when nothing of the attempt is left that could matter. */
export function changeOrEnd(state: State, by: number, changes: Partial<Attempt>): State {
  const changed = change(state, by, changes);
  const { record, decision, payments } = changed;
  const attempt = changed.attempts[by]!;
  const { guard, isClaimSent, isDecided, isTooLate } = attempt;
  const isOver = guard === "dead" || (guard === "over" && !isWorking(attempt));
  if (!isOver || isClaimSent || isDecided) return changed;
  const { owner, endedBy, formerOwner } = record;
  // It has the key and will never know: kept, for the invariant about keys that never ran.
  if (guard === "over" && attempt.handler === "none" && owner === by && !isTooLate) return changed;
  const attempts = changed.attempts.slice();
  attempts[by] = idle;
  if (owner !== by && endedBy !== by && formerOwner !== by) return { record, attempts, decision, payments };
  const orphan = {
    ...record,
    owner: owner === by ? nobody : owner,
    endedBy: endedBy === by ? nobody : endedBy,
    formerOwner: formerOwner === by ? nobody : formerOwner,
    orphanAnswer: owner === by ? answerOf(changed, by) : record.orphanAnswer,
  };
  return { record: orphan, attempts, decision, payments };
}

export function foundAnswer(state: State): FoundAnswer {
  const { owner, orphanAnswer } = state.record;
  return owner === nobody ? orphanAnswer : answerOf(state, owner);
}

function answerOf({ record, attempts }: State, by: number): FoundAnswer {
  if (attempts[by]!.answer !== "kept") return "none";
  return record.endedBy === by ? "own" : "other";
}
