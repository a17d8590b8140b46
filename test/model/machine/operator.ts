// Operators: people who decide rightly by what is true when they look, and act later.
import { may, type Rules } from "./configuration.ts";
import {
  changeOrEnd,
  type Decision,
  isAlive,
  isWorking,
  nobody,
  pay,
  type State,
  type Take,
} from "./state.ts";
import { mayReopen, reopen, resolve } from "./store.ts";

export function operatorSteps(state: State, rules: Rules, take: Take): void {
  if (!rules.hasOperator) return;
  // Under rerun, nothing may depend on an operator; but what another one has reopened is for one to decide.
  const isHeld = state.record.state === "held";
  const fair = rules.recovery === "hold" || isHeld;
  if (state.decision === undefined) look(state, rules, fair, take);
  else {
    act(state, state.decision, rules, fair, take);
    takeBack(state, rules, take);
  }
}

/** Somebody else takes the decision back while it may be delivered once more. */
function takeBack(state: State, rules: Rules, take: Take): void {
  if (!may("reopen", rules) || !mayReopen(state.record, rules.bugs)) return;
  const { fence, generation } = state.record;
  const decides: Decision = { outcome: "reopened", fence, generation };
  const { record } = reopen(state.record, decides, rules);
  take({ name: "a second operator: reopen(): ok", fair: false, told: "ok", decides }, { ...state, record });
}

/** Sees a key that is held, or a run whose lease has ended, with its fence; and the books. */
function look(state: State, rules: Rules, fair: boolean, take: Take): void {
  const { record, payments } = state;
  const { bugs } = rules;
  if (may("reopen", rules) && mayReopen(record, bugs)) {
    const { fence, generation } = record;
    const decision: Decision = { outcome: "reopened", fence, generation };
    take({ name: "an operator has second thoughts about a decision", fair: false }, { ...state, decision });
  }
  const isOver = record.isExpired || bugs.resolveOfLiveRun === true;
  if (record.state !== "held" && !(record.state === "running" && isOver)) return;
  const { fence, generation } = record;
  const decide = (outcome: Decision["outcome"]): State => ({
    ...state,
    decision: { outcome, fence, generation },
  });
  if (payments > 0) {
    take({ name: "an operator sees the payment and decides: done", fair }, decide("done"));
    return;
  }
  if (bugs.operatorLooksAway !== true && mayStillPay(state)) return;
  take({ name: "an operator sees no payment and decides: released", fair }, decide("released"));
  take(
    { name: "an operator sees no payment and decides: done, to be paid by hand on ok", fair },
    decide("paysOnOk"),
  );
  const owner = state.attempts[record.owner];
  const isGone = record.owner === nobody || (owner !== undefined && !isAlive(owner));
  if ((record.state === "held" && isGone) || bugs.operatorPaysFirst === true) {
    const paid = pay(decide("done"), rules);
    take({ name: "an operator pays by hand and decides: done", fair: false }, paid);
  }
}

/**
 * Whether the books can be wrong a moment later although nobody has the key: a call of the bank cannot be taken back by a record.
 * So an operator waits for the end of the old handler, or for the abort of its signal.
 */
function mayStillPay({ attempts }: State): boolean {
  return attempts.some(({ handler, isAborted }) => handler === "begun" && !isAborted);
}

function act(state: State, decision: Decision, rules: Rules, fair: boolean, take: Take): void {
  take(
    { name: "the operator's decision is lost on the way", fair: false },
    { ...state, decision: undefined },
  );
  const { outcome } = decision;
  const execute = outcome === "reopened" ? reopen : resolve;
  const { told, record } = execute(state.record, decision, rules);
  const isTaken = told === "ok";
  // Whom a reopening finds at work is overruled already.
  const owner = outcome === "reopened" ? nobody : state.record.owner;
  const decided = { ...state, record };
  const executed = isTaken
    ? overrule(outcome === "paysOnOk" ? pay(decided, rules) : decided, owner, rules)
    : state;
  const name = `${resolutions[outcome]}: ${told}`;
  const step = { name, fair, told: isTaken ? "ok" : "lost", decides: decision } as const;
  take(step, { ...executed, decision: undefined });
  if (isTaken && may("duplicate", rules)) {
    take({ ...step, name: `${name}, and it is delivered once more`, fair: false }, executed);
  }
}

const resolutions = {
  released: "resolve(released)",
  done: "resolve(done)",
  paysOnOk: "resolve(done) to pay by hand",
  reopened: "reopen()",
} as const;

function overrule(state: State, owner: number, { recovery }: Rules): State {
  const attempt = state.attempts[owner];
  if (attempt === undefined) return state;
  return changeOrEnd(state, owner, { isOverruled: recovery === "hold" && isWorking(attempt) });
}
