// Named as in docs/architecture.md. I5, that whatever is in doubt is 503, is what I2 and I4 leave of the answers.
import type { Rules } from "./configuration.ts";
import type { Goal, Invariant } from "./explorer.ts";
import { hasLock, isAlive, isWorking, type KeyStep, type State } from "./state.ts";

export type InvariantName =
  | "I1"
  | "I2"
  | "I3"
  | "I4"
  | "I6"
  | "I7"
  | "I8"
  | "I9"
  | "I10"
  | "I11"
  | "I12"
  | "I13"
  | "I14"
  | "I15"
  | "I25";

interface KeyInvariant extends Invariant<State, KeyStep> {
  readonly name: InvariantName;
}

/** From wherever things got, the payment can still be made. */
export const noWedge: Goal<State> = {
  name: "I3" satisfies InvariantName,
  reached: ({ payments }) => payments > 0,
};

/** All but I3. */
export function invariantsOf(rules: Rules): readonly KeyInvariant[] {
  return [
    { name: "I1", holds: ({ payments }) => payments <= 1 },
    { name: "I2", holds: saysDoneOfPaymentsAlone },
    { name: "I4", holds: ({ record }, { told }) => told !== "2xx" || record.state === "done" },
    { name: "I6", holds: onlyItsOwnerEndsIt },
    { name: "I7", holds: (after, step, before) => takesOnlyWhatIsFree(after, step, before, rules) },
    {
      name: "I8",
      holds: ({ record }, _, before) => !hasNewOwner(record, before) || record.fence > before.record.fence,
    },
    { name: "I9", holds: (after, step) => runsAlone(after, step, rules) },
    { name: "I10", holds: endsOnce },
    { name: "I11", holds: abortsFirst },
    { name: "I12", holds: beginsUnderALease },
    { name: "I13", holds: holdsNothingThatNeverRan },
    { name: "I14", holds: decidesWhatWasSeen },
    { name: "I15", holds: (after, step, before) => givesItsAnswerAgain(after, step, before, rules) },
    { name: "I25", holds: (after, step, before) => leavesNoKeyFree(after, step, before, rules) },
  ];
}

function isStepOfAttempt(step: KeyStep): step is KeyStep & { readonly by: number } {
  return step.by !== undefined;
}

// A reopening begins something new, too, and nobody has that.
function hasNewOwner({ state, generation }: State["record"], before: State): boolean {
  return state === "run" && generation !== before.record.generation;
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

/** I7: a claim takes a key that is free; under rerun also a run whose lease has ended. Never one whose row is locked. */
function takesOnlyWhatIsFree(after: State, _: KeyStep, before: State, { recovery }: Rules): boolean {
  if (!hasNewOwner(after.record, before)) return true;
  const { state, isExpired } = before.record;
  const isOver = state === "run" && isExpired && recovery === "rerun";
  return (state === "free" || isOver) && !before.attempts.some(hasLock);
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
  return step.told !== "begins" || (record.state === "run" && record.owner === step.by && !record.isExpired);
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
    decides.outcome === "reopened" ? isDecided : state === "held" || (state === "run" && isExpired);
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
