// Named as in docs/architecture.md. I5, that whatever is in doubt is 503, is what I2 and I4 leave of the answers.
import type { Rules } from "./configuration.ts";
import type { Goal, Invariants } from "./explorer.ts";
import { isAlive, isWorking, type KeyStep, type State } from "./state.ts";

export type InvariantName = keyof ReturnType<typeof invariantsOf> | "I3";

/** From wherever things got, the payment can still be made. */
export const noWedge: Goal<State> = {
  name: "I3",
  reached: ({ payments }) => payments > 0,
};

/** All but I3. */
export function invariantsOf(rules: Rules) {
  return {
    I1: ({ payments }) => payments <= 1,
    I2: saysDoneOfPaymentsAlone,
    I4: ({ record }, { told }) => told !== "2xx" || record.state === "done",
    I6: onlyItsOwnerEndsIt,
    I7: (after, step, before) => takesOnlyWhatIsFree(after, step, before, rules),
    I8: ({ record }, _, before) => !hasNewOwner(record, before) || record.fence > before.record.fence,
    I9: (after, step) => runsAlone(after, step, rules),
    I10: endsOnce,
    I11: abortsFirst,
    I12: beginsUnderALease,
    I13: holdsNothingThatNeverRan,
    I14: decidesWhatWasSeen,
    I15: (after, step, before) => givesItsAnswerAgain(after, step, before, rules),
    I25: (after, step, before) => leavesNoKeyFree(after, step, before, rules),
  } satisfies Invariants<State, KeyStep>;
}

function isStepOfAttempt(step: KeyStep): step is KeyStep & { readonly by: number } {
  return step.by !== undefined;
}

// A reopening begins something new, too, and nobody has that.
function hasNewOwner({ state, generation }: State["record"], before: State): boolean {
  return state === "running" && generation !== before.record.generation;
}

/** I2: also of a record that nobody has read yet. */
function saysDoneOfPaymentsAlone({ record, payments }: State, { told }: KeyStep): boolean {
  return payments > 0 || (record.state !== "done" && told !== "409" && told !== "again");
}

/** I6: what is told `ok`, or ends the run, was of the token that the record bore. */
function onlyItsOwnerEndsIt(_: State, step: KeyStep, before: State): boolean {
  if (!isStepOfAttempt(step) || (step.told !== "ok" && step.told !== "2xx")) return true;
  return before.record.owner === step.by;
}

/** I7: a claim takes a key that is free; under rerun also a run whose lease has ended. */
function takesOnlyWhatIsFree(after: State, _: KeyStep, before: State, { recovery }: Rules): boolean {
  if (!hasNewOwner(after.record, before)) return true;
  const { state, isExpired } = before.record;
  const isOver = state === "running" && isExpired && recovery === "rerun";
  return state === "free" || isOver;
}

/** I9: under hold, a handler begins when nobody has paid and nobody works, but for those whom an operator has overruled. */
function runsAlone(after: State, step: KeyStep, { recovery }: Rules): boolean {
  if (step.told !== "begins" || recovery !== "hold") return true;
  const others = after.attempts.filter(
    (attempt, by) => by !== step.by && isWorking(attempt) && !attempt.isOverruled,
  );
  return after.payments === 0 && others.length === 0;
}

/** I10: done stays done, unless an operator takes their own decision back; it is an attempt's own only when the attempt has ended it. */
function endsOnce({ record }: State, step: KeyStep, before: State): boolean {
  if (before.record.state === "done" && record.state !== "done" && !isTakenBack(step, before)) return false;
  if (step.told !== "2xx" || !isStepOfAttempt(step)) return true;
  return before.record.state !== "done" || before.record.endedBy === step.by;
}

function isTakenBack({ decides }: KeyStep, { record }: State): boolean {
  return decides?.outcome === "reopened" && record.isDecided;
}

/** I11: an attempt that gives its key back while its handler works has aborted the signal before. */
function abortsFirst(after: State, step: KeyStep, before: State): boolean {
  if (!isStepOfAttempt(step) || step.told !== "ok" || before.record.owner !== step.by) return true;
  const { state } = after.record;
  if (state === before.record.state || (state !== "free" && state !== "held")) return true;
  const attempt = before.attempts[step.by]!;
  return !isWorking(attempt) || attempt.isAborted;
}

/** I12: a handler begins while the key is its own and the lease has not ended. */
function beginsUnderALease({ record }: State, step: KeyStep): boolean {
  return (
    step.told !== "begins" || (record.state === "running" && record.owner === step.by && !record.isExpired)
  );
}

/** I13: no key is held whose owner lives, heard of it in time, and never began its handler. */
function holdsNothingThatNeverRan({ record, attempts }: State): boolean {
  const owner = attempts[record.owner];
  if (record.state !== "held" || owner === undefined || !isAlive(owner)) return true;
  return owner.handler !== "none" || owner.isTooLate;
}

/**
 * I14: an operator's decision takes effect on the owner that they saw, when it is held or its lease has ended; a reopening on the decision
 * that they saw, when nobody has had the key since.
 */
function decidesWhatWasSeen(_: State, { decides, told }: KeyStep, { record }: State): boolean {
  if (decides === undefined || told !== "ok") return true;
  const { state, isExpired } = record;
  const isDecided = state === "free" || state === "done";
  const isOpen =
    decides.outcome === "reopened" ? isDecided : state === "held" || (state === "running" && isExpired);
  return isOpen && decides.generation === record.generation;
}

/**
 * I15: what is given again is of a done key, and the answer of the attempt that ended it. By the time that the guard records a key, or
 * lets a 2xx out, it has kept the answer or failed to; a done key without one stays done.
 */
function givesItsAnswerAgain(after: State, step: KeyStep, before: State, { givesAgain }: Rules): boolean {
  if (givesAgain !== true) return true;
  const wasDone = before.record.state === "done";
  if (step.told === "again" && !(wasDone && step.answer === "own")) return false;
  if (wasDone && isTakenBack(step, before)) return true;
  if (wasDone) return after.record.state === "done" && (step.told !== "2xx" || isAnswerTried(step, before));
  const isRecorded = isStepOfAttempt(step) && before.attempts[step.by]!.guard === "completing";
  return !(isRecorded && after.record.state === "done") || isAnswerTried(step, before);
}

function isAnswerTried(step: KeyStep, { attempts }: State): boolean {
  return !isStepOfAttempt(step) || attempts[step.by]!.answer !== "none";
}

/**
 * I25: an attempt that lives and may have paid ends with a key that no operator has freed from it. Under rerun a second run does no harm, and a
 * decision that comes behind its end finds the books as they are.
 */
function leavesNoKeyFree(after: State, step: KeyStep, before: State, { recovery }: Rules): boolean {
  // A kill is no fair step.
  if (!isStepOfAttempt(step) || !step.fair || recovery !== "hold") return true;
  const guards = [before, after].map(({ attempts }) => attempts[step.by]!.guard);
  const [was = "none", is = "none"] = guards;
  const hasEnded = ["completing", "holding", "takingBack"].includes(was) && ["over", "none"].includes(is);
  if (!hasEnded) return true;
  return after.record.state !== "free" || before.record.formerOwner !== step.by;
}
