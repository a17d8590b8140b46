// The handlers of a platform.
import { may, type Rules } from "./configuration.ts";
import { type Attempt, change, changeOrEnd, type State, type Take } from "./state.ts";
import { end, isLocked, mayCompleteIn } from "./store.ts";

export function handlerSteps(state: State, rules: Rules, take: Take): void {
  state.attempts.forEach(({ handler }, by) => {
    if (handler === "none" || handler === "ended") return;
    if (rules.handler === "bank") bankSteps(state, by, rules, take);
    else transactionSteps(state, by, rules, take);
    if (handler === "paid") succeed(state, by, rules, take);
  });
}

/** A throw says nothing about the effect: it holds the key. A handler that knows that nothing has happened says so. */
function bankSteps(state: State, by: number, rules: Rules, take: Take): void {
  const { handler, isAborted } = state.attempts[by]!;
  if (handler === "begun") {
    take(
      { name: "its handler says that nothing has happened", by, fair: isAborted },
      fail(state, by, "releasing"),
    );
    if (isAborted && rules.bugs.handlerIgnoresSignal !== true) return;
    const paid = { ...state, payments: state.payments + 1 };
    take({ name: "the bank pays", by, fair: true }, change(paid, by, { handler: "paid" }));
    take(
      { name: "the bank pays, and its answer is lost", by, fair: false },
      change(paid, by, { handler: "unsure" }),
    );
    take({ name: "the bank is not reached", by, fair: false }, change(state, by, { handler: "unsure" }));
  } else {
    const guard = rules.bugs.holdForgotten === true ? "releasing" : "holding";
    take({ name: "its handler throws, in doubt", by, fair: handler === "unsure" }, fail(state, by, guard));
  }
}

function transactionSteps(state: State, by: number, rules: Rules, take: Take): void {
  const attempt = state.attempts[by]!;
  const { handler, transaction } = attempt;
  if (handler === "begun") {
    if (transaction === "none" && !isLocked(state, rules)) beginTransaction(state, by, rules, take);
    // Nobody knows what a handler that throws has done, unless its transaction's record tells.
    take(
      { name: "its handler says that nothing has happened", by, fair: false },
      fail(state, by, "releasing"),
    );
    const doubt = rules.recovery === "hold" ? "holding" : "releasing";
    take({ name: "its handler throws", by, fair: false }, fail(state, by, doubt));
    if (attempt.guard === "running") answersFirst(state, by, rules, take);
    if (may("stray", rules) && rules.handler === "transaction") {
      const gone = fail(state, by, "releasing", { isStray: true });
      take({ name: "its handler gives up on completeIn() and rolls back", by, fair: false }, gone);
    }
  } else if (handler === "inTransaction") {
    commit(state, by, take);
    const rolledBack = fail(state, by, "releasing", { transaction: "none" });
    take({ name: "its handler fails and rolls back", by, fair: false }, rolledBack);
  } else if (handler === "unsure") {
    take({ name: "repeats its transaction", by, fair: false }, change(state, by, { handler: "begun" }));
    take({ name: "its handler fails, unsure of its COMMIT", by, fair: true }, fail(state, by, "releasing"));
  } else if (rules.handler === "transaction") {
    take({ name: "its handler fails behind its COMMIT", by, fair: false }, fail(state, by, "releasing"));
  }
}

/** A 2xx before completeIn(), whose transaction rolls back. Under rerun the key is held as well, and nothing else waits there. */
function answersFirst(state: State, by: number, rules: Rules, take: Take): void {
  const { recovery, bugs } = rules;
  if (bugs.handlerAnswersFirst === true) {
    const answered = change(state, by, { guard: "completing" });
    take(
      { name: "its handler ends with a 2xx, and has not begun its transaction", by, fair: false },
      answered,
    );
  }
  if (recovery !== "hold" || !may("early", rules)) return;
  const after =
    bugs.successBeforeCommit === true
      ? changeOrEnd(state, by, { handler: "ended", guard: "completing" })
      : change(state, by, { handler: "paid" });
  take(
    { name: "its handler ends with a 2xx, calls completeIn() too late and rolls back", by, fair: false },
    after,
  );
}

function commit(state: State, by: number, take: Take): void {
  const paid = { ...state, record: end(state.record, by), payments: state.payments + 1 };
  const ended = { transaction: "none" } as const;
  take({ name: "commits", by, fair: true }, change(paid, by, { handler: "paid", ...ended }));
  take(
    { name: "commits, and the answer is lost", by, fair: false },
    change(paid, by, { handler: "unsure", ...ended }),
  );
  const late = change(state, by, { handler: "unsure", transaction: "committing" });
  take({ name: "sends COMMIT, and hears no answer in time", by, fair: false }, late);
}

/** BEGIN, completeIn(), the payment's row. Its order with completeIn() is the same to everybody outside. */
function beginTransaction(state: State, by: number, rules: Rules, take: Take): void {
  const { bugs } = rules;
  const told = mayCompleteIn(state.record, by, rules) ? "ok" : "lost";
  if (told === "lost" && bugs.handlerIgnoresLost !== true) {
    take(
      { name: "completeIn(): lost; its handler rolls back and fails", by, fair: true, told },
      fail(state, by, "releasing"),
    );
    if (state.record.state === "done" && state.record.owner === by) {
      const paid = change(state, by, { handler: "paid" });
      take(
        { name: "completeIn(): lost; reads that its own commit went through", by, fair: true, told },
        paid,
      );
    }
    return;
  }
  if (rules.handler === "savepoint") {
    const paid = { ...state, payments: state.payments + 1 };
    const after = change(paid, by, { handler: "paid" });
    take({ name: "completeIn() in a savepoint that is undone; pays and commits", by, fair: true }, after);
    return;
  }
  const open = change(state, by, { handler: "inTransaction", transaction: "open" });
  take({ name: `begins its transaction; completeIn(): ${told}`, by, fair: true, told }, open);
  // A connection without BEGIN: refused, for `done` would commit alone.
  const alone = { ...state, record: bugs.idleCompleteIn === true ? end(state.record, by) : state.record };
  take(
    { name: "completeIn() without BEGIN; its handler fails", by, fair: false },
    fail(alone, by, "releasing"),
  );
}

/** An answer that is no 2xx. It gives the key back, unless somebody else has done so already. */
function fail(state: State, by: number, guard: "releasing" | "holding", left: Partial<Attempt> = {}): State {
  const waits = state.attempts[by]!.guard;
  const decides = waits === "running" || waits === "outlived";
  return changeOrEnd(state, by, { ...left, handler: "ended", ...(decides && { guard }) });
}

/** A 2xx: the guard records it, or reads from outside of the transaction whether completeIn() was committed. */
function succeed(state: State, by: number, rules: Rules, take: Take): void {
  const { record } = state;
  const { bugs } = rules;
  const end2xx = (guard: Attempt["guard"]): State => changeOrEnd(state, by, { handler: "ended", guard });
  const { guard: waiting, answer } = state.attempts[by]!;
  if (waiting !== "running") {
    // It has paid: its late success completes a key that is held, or left to its lease.
    const isLate = rules.handler === "bank" || waiting === "outlived";
    const left =
      bugs.lateSuccessFrees === true ? "releasing" : rules.handler === "bank" ? "completing" : "holding";
    // The response was somebody else's: none of the handler's can be kept.
    const unkept = answer === "none" ? change(state, by, { answer: "failed" }) : state;
    take(
      { name: "its handler ends with a 2xx that nobody waits for", by, fair: true },
      changeOrEnd(unkept, by, { handler: "ended", guard: isLate ? left : waiting }),
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
  if (bugs.answerBeforeDone === true) {
    take({ name: "2xx leaves at once", by, fair: true, told: "2xx" }, end2xx("over"));
    return;
  }
  if (rules.handler === "bank") {
    take({ name: "its handler ends with a 2xx", by, fair: true }, end2xx("completing"));
    return;
  }
  if (record.state === "done" && record.owner === by) {
    take({ name: "2xx leaves: its record is done", by, fair: true, told: "2xx" }, end2xx("over"));
    take({ name: "its record cannot be read: 503", by, fair: false }, end2xx("holding"));
    return;
  }
  const guard =
    bugs.contradictionReleased === true
      ? "releasing"
      : bugs.contradictionIgnored === true
        ? "over"
        : "holding";
  take({ name: "its record contradicts its 2xx: 503 and an alarm", by, fair: true }, end2xx(guard));
}
