// The handlers of a platform: each calls a system that nobody but itself knows of.
import type { Rules } from "./configuration.ts";
import { type Attempt, change, changeOrEnd, pay, type State, type Take } from "./state.ts";

export function handlerSteps(state: State, rules: Rules, take: Take): void {
  state.attempts.forEach(({ handler }, by) => {
    if (handler === "none" || handler === "ended") return;
    if (handler === "begun") begin(state, by, rules, take);
    else throwInDoubt(state, by, rules, take);
    if (handler === "paid") succeed(state, by, rules, take);
  });
}

function begin(state: State, by: number, rules: Rules, take: Take): void {
  const { isAborted, guard } = state.attempts[by]!;
  const { bugs } = rules;
  take(
    { name: "its handler says that nothing has happened", by, fair: isAborted },
    fail(state, by, "releasing"),
  );
  if (bugs.handlerAnswersFirst === true && guard === "running") {
    const answered = change(state, by, { guard: "completing" });
    take({ name: "its handler ends with a 2xx, and has not called the bank", by, fair: false }, answered);
  }
  if (isAborted && bugs.handlerIgnoresSignal !== true) return;
  const paid = pay(state, rules);
  take({ name: "the bank pays", by, fair: true }, change(paid, by, { handler: "paid" }));
  take(
    { name: "the bank pays, and its answer is lost", by, fair: false },
    change(paid, by, { handler: "unsure" }),
  );
  take({ name: "the bank is not reached", by, fair: false }, change(state, by, { handler: "unsure" }));
}

/** A throw says nothing about the effect. Under hold it holds the key; under rerun another run does no harm. */
function throwInDoubt(state: State, by: number, { recovery, bugs }: Rules, take: Take): void {
  const guard = recovery === "hold" && bugs.holdForgotten !== true ? "holding" : "releasing";
  const fair = state.attempts[by]!.handler === "unsure";
  take({ name: "its handler throws, in doubt", by, fair }, fail(state, by, guard));
}

/** An answer that is no 2xx. It gives the key back, unless somebody else has done so already. */
function fail(state: State, by: number, guard: "releasing" | "holding"): State {
  const waits = state.attempts[by]!.guard;
  const decides = waits === "running" || waits === "outlived";
  return changeOrEnd(state, by, { handler: "ended", ...(decides && { guard }) });
}

/** A 2xx, which the guard records. */
function succeed(state: State, by: number, rules: Rules, take: Take): void {
  const { bugs } = rules;
  const { guard: waiting, answer } = state.attempts[by]!;
  if (waiting !== "running") {
    // It has paid: its late success completes a key that is held, or left to its lease.
    const guard = bugs.lateSuccessFrees === true ? "releasing" : "completing";
    // The response was somebody else's: none of the handler's can be kept.
    const unkept = answer === "none" ? change(state, by, { answer: "failed" }) : state;
    take(
      { name: "its handler ends with a 2xx that nobody waits for", by, fair: true },
      changeOrEnd(unkept, by, { handler: "ended", guard }),
    );
    return;
  }
  if (rules.givesAgain === true && bugs.answerKeptLast !== true && answer === "none") {
    // More may happen behind it than in the guard, whose response has ended by then.
    const keeps = (kept: Attempt["answer"]): State => change(state, by, { answer: kept });
    take({ name: "its answer is kept", by, fair: true }, keeps("kept"));
    take({ name: "its answer is not kept", by, fair: false }, keeps("failed"));
    return;
  }
  const ended = (guard: Attempt["guard"]): State => changeOrEnd(state, by, { handler: "ended", guard });
  if (bugs.answerBeforeDone === true) {
    take({ name: "2xx leaves at once", by, fair: true, told: "2xx" }, ended("over"));
    return;
  }
  take({ name: "its handler ends with a 2xx", by, fair: true }, ended("completing"));
}
