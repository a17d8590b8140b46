// What happens between a process and its store, and to both: messages that are executed late, twice or never, and the faults.
import { may, type Rules } from "./configuration.ts";
import {
  type Attempt,
  change,
  changeOrEnd,
  foundAnswer,
  type FoundAnswer,
  idle,
  isAlive,
  nobody,
  type State,
  type Take,
} from "./state.ts";
import { claim, free, type Reply, take as takeKey } from "./store.ts";

export function networkSteps(state: State, rules: Rules, take: Take): void {
  requestArrives(state, rules, take);
  leaseEnds(state, rules, take);
  if (rules.bugs.doneEvicted === true && state.record.state === "done") {
    take({ name: "the record is evicted", fair: false }, { ...state, record: free(state.record) });
  }
  state.attempts.forEach((attempt, by) => {
    if (attempt.guard === "none") return;
    if (attempt.isClaimSent) claimArrives(state, by, rules, take);
    if (attempt.isDecided) {
      const written = { ...state, record: takeKey(state.record, by, rules) };
      take(
        { name: "the store writes the claim that it had decided", by, fair: true, told: "acquired" },
        change(written, by, { isDecided: false, isGranted: attempt.guard === "claiming" }),
      );
    }
    if (isAlive(attempt) && may("crash", rules)) {
      const { isClaimSent, isDecided, answer } = attempt;
      const dead: Attempt = { ...idle, isClaimSent, isDecided, answer, guard: "dead" };
      take({ name: "its process is killed", by, fair: false }, changeOrEnd(state, by, dead));
    }
  });
}

/**
 * The sender tries again until it hears 2xx or 409. A request that finds `done` is answered 409 at once, or with the first answer, and
 * leaves no trace.
 */
function requestArrives(state: State, rules: Rules, take: Take): void {
  const by = state.attempts.indexOf(idle);
  if (state.record.state === "done") {
    const answer = givenAgain(state, rules);
    const name = `a request finds the key done: ${answer === undefined ? "409" : "the first answer"}`;
    take({ name, fair: false, told: answer === undefined ? "409" : "again", answer }, state);
    return;
  }
  if (by === -1) return;
  const after = change(state, by, { guard: "claiming", isClaimSent: true });
  take({ name: "a request arrives and its claim is sent", by, fair: true }, after);
}

/** Undefined where no answer is given again. */
function givenAgain(state: State, { givesAgain, bugs }: Rules): FoundAnswer | undefined {
  if (givesAgain !== true || (state.record.state !== "done" && bugs.answerOfAnyState !== true))
    return undefined;
  const found = bugs.answerByKey === true ? lastAnswer(state) : foundAnswer(state);
  return found === "none" ? undefined : found;
}

/** Under the name of the key: whatever attempt has kept one. */
function lastAnswer(state: State): FoundAnswer {
  const { record, attempts } = state;
  const by = attempts.findIndex(({ answer }) => answer === "kept");
  return by === -1 ? record.orphanAnswer : by === record.endedBy ? "own" : "other";
}

function claimArrives(state: State, by: number, rules: Rules, take: Take): void {
  const found = givenAgain(state, rules);
  const reply = claimOf(state, by, rules);
  const isWaiting = state.attempts[by]!.guard === "claiming";
  take(
    { name: "its claim is lost on the way", by, fair: false },
    changeOrEnd(state, by, { isClaimSent: false }),
  );
  if (reply.told === "acquired" && rules.bugs.claimInTwoSteps === true) {
    const after = change(state, by, { isClaimSent: false, isDecided: true });
    take({ name: "the store decides the claim and does not write it yet", by, fair: true }, after);
    return;
  }
  const executed = { ...state, record: reply.record };
  if (reply.told === "acquired") {
    const step = { by, told: "acquired" } as const;
    const granted = change(executed, by, { isGranted: isWaiting });
    take(
      { ...step, name: "the store executes its claim: acquired", fair: true },
      changeOrEnd(granted, by, { isClaimSent: false }),
    );
    if (may("duplicate", rules)) {
      take(
        { ...step, name: "the store executes its claim, which is sent twice: acquired", fair: false },
        granted,
      );
    }
    return;
  }
  const isDone = reply.record.state === "done" || rules.bugs.inFlightIs409 === true;
  const told = found !== undefined ? "again" : isDone ? "409" : "503";
  const refused = isWaiting ? ({ guard: "over", isGranted: false } as const) : {};
  take(
    { name: `the store refuses its claim: ${told}`, by, fair: true, told, answer: found },
    changeOrEnd(executed, by, { ...refused, isClaimSent: false }),
  );
}

function claimOf(state: State, by: number, rules: Rules): Reply {
  const { record } = state;
  const isUnanswered = record.state === "done" && foundAnswer(state) === "none";
  if (rules.bugs.unansweredRunsAgain !== true || !isUnanswered) return claim(record, by, rules);
  return { told: "acquired", record: takeKey(record, by, rules) };
}

/** At any step: an owner that stands still, a store out of reach, or nobody who renews it. */
function leaseEnds(state: State, rules: Rules, take: Take): void {
  const { record, attempts } = state;
  const { runVanishes, clockSetBack } = rules.bugs;
  if (record.state !== "running" || record.isExpired || clockSetBack === true) return;
  const owner = attempts[record.owner];
  const isLeft = owner === undefined || owner.guard === "dead" || owner.guard === "over";
  if (!isLeft && !may("stall", rules)) return;
  const ended = runVanishes === true ? free(record) : { ...record, isExpired: true };
  const isTooLate = owner?.guard === "claiming" || owner?.guard === "abandoning";
  const after = isTooLate ? change(state, record.owner, { isTooLate }) : state;
  const step = {
    name: "the lease ends",
    by: record.owner === nobody ? undefined : record.owner,
    fair: isLeft,
  };
  take(step, { ...after, record: ended });
}
