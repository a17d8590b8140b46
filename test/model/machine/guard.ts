// The guard of one request: idempotency's lease-owner.ts, idempotency-keys.ts, owned-key.ts and lease.ts, and idempotency-guard's response-watch.ts.
import { may, type Rules } from "./configuration.ts";
import {
  type Attempt,
  change,
  changeOrEnd,
  isWorking,
  type KeyStep,
  type State,
  type Take,
} from "./state.ts";
import { complete, giveBack, heartbeat, hold, release, type Reply, takeBack } from "./store.ts";

export function guardSteps(state: State, rules: Rules, take: Take): void {
  state.attempts.forEach((attempt, by) => {
    const { guard } = attempt;
    if (guard === "claiming") waitForClaim(state, by, rules, take);
    if (guard === "abandoning" && attempt.isGranted) {
      const after = change(state, by, { handler: "begun", isGranted: false });
      take(
        { name: "its handler begins although the claim was given up", by, fair: false, told: "begins" },
        after,
      );
    }
    if (guard === "running" && isWorking(attempt)) {
      somebodyElseAnswers(state, by, rules, take);
      timeOutAnswers(state, by, rules, take);
    }
    if (guard === "running" || guard === "completing" || guard === "releasing" || guard === "holding") {
      renewLease(state, by, rules, take);
    }
    if (guard === "abandoning") releaseAbandoned(state, by, rules, take);
    const settles = (reply: Reply): void => settle(state, by, reply, rules, take);
    if (guard === "completing") settles(complete(state.record, by, rules));
    if (guard === "releasing") settles(release(state.record, by, rules));
    if (guard === "holding") settles(hold(state.record, by, rules));
    if (guard === "takingBack") settleLost(state, by, takeBack(state.record, by, rules), take);
  });
}

function waitForClaim(state: State, by: number, { bugs }: Rules, take: Take): void {
  const { isGranted, isTooLate, isClaimSent } = state.attempts[by]!;
  // A reply that was under way for a whole lease says nothing about now.
  if (isGranted && (!isTooLate || bugs.lateReplyUsed === true)) {
    const after = change(state, by, { guard: "running", handler: "begun", isGranted: false });
    take({ name: "its handler begins", by, fair: true, told: "begins" }, after);
  }
  const givesUp = changeOrEnd(state, by, {
    guard: bugs.claimNotAbandoned === true ? "over" : "abandoning",
    isGranted: isGranted && bugs.abandonedReplyUsed === true,
  });
  const isAllOver = !isClaimSent && (!isGranted || isTooLate);
  take({ name: "has no usable answer to its claim: 503", by, fair: isAllOver }, givesUp);
}

/** Sends releases until the claim cannot be executed any more and one of them was. */
function releaseAbandoned(state: State, by: number, rules: Rules, take: Take): void {
  const { told, record } = giveBack(state.record, by, rules);
  const isSure = !state.attempts[by]!.isClaimSent || rules.bugs.abandonGivesUp === true;
  const released = { ...state, record };
  take(
    { name: "releases a claim that it gave up", by, fair: true, told: told === "ok" ? "ok" : "lost" },
    isSure ? changeOrEnd(released, by, { guard: "over" }) : released,
  );
}

function renewLease(state: State, by: number, rules: Rules, take: Take): void {
  const { told, record } = heartbeat(state.record, by, rules);
  const attempt = state.attempts[by]!;
  if (told === "ok" && record !== state.record) {
    take({ name: "renews the lease", by, fair: true, told: "ok" }, { ...state, record });
  }
  if (told === "lost" && attempt.guard === "running" && isWorking(attempt) && !attempt.isAborted) {
    const after = change(state, by, { isAborted: true });
    take({ name: "hears that the key is lost, and aborts its signal", by, fair: true }, after);
  }
}

/**
 * An app's time-out middleware, or whoever destroys the response. The signal aborts before the key is given back; where
 * the effect may have happened, and an operator is to decide about such keys, it is held. Otherwise it is left to its lease.
 */
function somebodyElseAnswers(state: State, by: number, rules: Rules, take: Take): void {
  if (!may("answered", rules)) return;
  const { recovery, bugs } = rules;
  const guard: Attempt["guard"] =
    bugs.freedWhileWorking === true ? "releasing" : recovery === "hold" ? "holding" : "outlived";
  const after = change(state, by, { guard, isAborted: bugs.signalNotAborted !== true });
  take({ name: "somebody else answers for its handler", by, fair: false }, after);
}

/** From within the handler's asynchronous context, where an adapter knows by the handler's promise that it works on. */
function timeOutAnswers(state: State, by: number, rules: Rules, take: Take): void {
  const { recovery, bugs } = rules;
  if (recovery !== "hold" || !may("timedOut", rules)) return;
  const guard = bugs.timeOutIsTheHandlers === true ? "releasing" : "holding";
  const after = change(state, by, { guard, isAborted: true });
  take({ name: "a time-out behind the guard answers for its handler", by, fair: false }, after);
}

const settlements = {
  completing: "records its payment",
  releasing: "releases the key",
  holding: "holds the key",
} as const;

/** Repeated until an answer arrives. A 2xx waits for that of complete(). */
function settle(state: State, by: number, { told, record }: Reply, rules: Rules, take: Take): void {
  const { guard } = state.attempts[by]!;
  const mayHavePaid = told === "lost" && guard !== "releasing" && rules.recovery === "hold";
  const next = mayHavePaid && rules.bugs.lostSuccessForgotten !== true ? "takingBack" : "over";
  const name = settlements[guard as keyof typeof settlements];
  const settled: State = { ...state, record };
  const answer: KeyStep["told"] =
    guard === "completing" && told === "ok" ? "2xx" : told === "ok" ? "ok" : "lost";
  take(
    { name: `${name}: ${answer}`, by, fair: true, told: answer },
    changeOrEnd(settled, by, { guard: next }),
  );
  if (record !== state.record) {
    take({ name: `${name}, and the answer is lost`, by, fair: false, told: "ok" }, settled);
  }
}

/** Repeated until an answer arrives. No answer of the guard depends on it: its request is 503 in either case. */
function settleLost(state: State, by: number, { told, record }: Reply, take: Take): void {
  const settled: State = { ...state, record };
  const name = `takes the decision about its key back: ${told}`;
  take({ name, by, fair: true }, changeOrEnd(settled, by, { guard: "over" }));
  if (record !== state.record) {
    take({ name: `${name}, and the answer is lost`, by, fair: false }, settled);
  }
}
