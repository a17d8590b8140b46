// The state table of a handler that gets its transaction, beside guards that keep leases: idempotency's transaction-owner.ts and the begin() of
// the stores. What the stores' other steps do to a key, and what operators do, is the idempotency machine's.
import type { Rules } from "../machine/configuration.ts";
import type { Machine } from "../machine/explorer.ts";
import { operatorSteps } from "../machine/operator.ts";
import { idle as idleAttempt, type KeyRecord, nobody } from "../machine/state.ts";
import { claim, complete, end, heartbeat, hold, release, take as taken } from "../machine/store.ts";
import {
  change,
  encodeTransactions,
  endedAs,
  hasLock,
  initialTransactions,
  isLocked,
  type Take,
  type TransactionRules,
  type TransactionState,
  type TransactionStep,
} from "./state.ts";

type Told = NonNullable<TransactionStep["told"]>;

/** A request, and what its steps have in common. */
interface Turn {
  readonly state: TransactionState;
  readonly by: number;
  readonly rules: TransactionRules;
  readonly take: Take;
  readonly go: (name: string, after: TransactionState, more?: Partial<TransactionStep>) => void;
  /** Ends the request. */
  readonly answer: (name: string, told: Told, after: TransactionState, fair?: boolean) => void;
}

export function transactionMachine(rules: TransactionRules): Machine<TransactionState, TransactionStep> {
  return {
    initial: initialTransactions(rules),
    encode: (state) => encodeTransactions(state, rules),
    steps(state, take) {
      state.requests.forEach(({ phase }, by) => {
        const turn = turnOf(state, by, rules, take);
        if (phase === "none") arrive(turn);
        else {
          faults(turn);
          if (phase !== "dead") (rules.places[by] === "transaction" ? transactionSteps : leaseSteps)(turn);
        }
      });
      leaseEnds(state, take);
      operatorAndPruner(state, rules, take);
    },
  };
}

function turnOf(state: TransactionState, by: number, rules: TransactionRules, take: Take): Turn {
  return {
    state,
    by,
    rules,
    take,
    go: (name, after, more) => take({ name, by, fair: true, ...more }, after),
    answer: (name, told, after, fair = true) => take({ name, by, fair, told }, endedAs(told, after, by)),
  };
}

/** For the steps of a store and of operators: none of their bugs is put back here. */
function storeRules({ recovery, hasOperator }: TransactionRules): Rules {
  return { attempts: 2, recovery, handler: handlerUnder(recovery), hasOperator, bugs: {} };
}

/** Who says `rerun` has handlers that do no harm when they run again, in either mode. */
function handlerUnder(recovery: TransactionRules["recovery"]): Rules["handler"] {
  return recovery === "rerun" ? "idempotent" : "bank";
}

function arrive({ state, by, rules, go }: Turn): void {
  const isLease = rules.places[by] === "lease";
  if (isLease && rules.leasesAreOver === true && state.record.fence > 0) return;
  const fair = !isLease || rules.leasesAreOver !== true;
  go("a request arrives", change(state, by, { phase: "sent" }), { fair });
  if (isLease) return;
  const copied = change(state, by, { phase: "sent", isCopy: true });
  go("the bytes of one request arrive, perhaps again", copied, { fair: false });
}

function transactionSteps(turn: Turn): void {
  const { state, by, rules, go, answer } = turn;
  const { phase, transaction } = state.requests[by]!;
  const { bugs } = rules;
  if (phase === "sent") begin(turn);
  if (phase === "begun") {
    go("its handler pays", change(state, by, { phase: "paid" }));
    if (rules.deadlockEndsAll === true) {
      const alone = change(state, by, { phase: "alone", transaction: "alone" });
      const after = bugs.autocommitOn === true ? rolledBack(pay(alone, rules), by, "alone") : alone;
      go("a deadlock ends its transaction; its handler goes on, and pays", after, { fair: false });
      paysAlone(turn);
    } else {
      go("its handler swallows an error", change(state, by, { phase: "broken" }), { fair: false });
    }
  }
  if (phase === "begun" || phase === "paid") {
    go("its handler refuses; ROLLBACK", rolledBack(state, by, "refusing"), { fair: false });
  }
  if (phase === "begun") {
    leavesNothing(turn);
    leavesStatement(turn);
  }
  if (phase === "begun" || phase === "paid") commitsEarly(turn);
  if (phase === "early") endsBehindItsCommit(turn);
  if (phase === "paid") go("the last statement", change(state, by, { phase: "kept" }));
  if (phase === "broken") {
    if (bugs.noLastStatement === true) {
      answer("COMMIT, which rolls back and says so to nobody: 2xx", "2xx", rolledBack(state, by));
    } else {
      answer("the last statement fails; ROLLBACK: 500", "500", rolledBack(state, by));
    }
  }
  if (phase === "alone") {
    if (bugs.deadlockSwallowed === true) answer("COMMIT: 2xx", "2xx", pay(rolledBack(state, by), rules));
    else if (!isLocked(state)) {
      answer("the last statement finds no key; ROLLBACK, and it is held: 500", "500", heldAfterEnd(turn));
    }
  }
  if (phase === "kept") {
    commit(turn, usedNonce({ ...state, record: end(taken(state.record, by, storeRules(rules)), by) }, by));
  }
  if (phase === "kept") {
    const aborted = change(state, by, { phase: "aborted" });
    go("a statement fails behind that, which its handler does not await", aborted, { fair: false });
  }
  if (phase === "aborted") {
    const gone = rolledBack(state, by);
    if (bugs.commitNotAsked === true)
      answer("COMMIT, which rolls back and says so to nobody: 2xx", "2xx", gone);
    else
      answer(
        "COMMIT is asked, and has rolled back; its nonce is claimed alone: 500",
        "500",
        usedNonce(gone, by),
      );
  }
  if (phase === "unsure") {
    answer("nobody knows how its COMMIT ended: 503", "503", state);
    if (bugs.commitRepeated === true && transaction === "none") {
      answer("COMMIT once more, on another connection, which is ok: 2xx", "2xx", state);
    }
  }
  if (phase === "cut") {
    answer("its transaction is gone: 503", "503", state);
    if (bugs.refusedWithoutNonce === true) answer("its handler refuses: 400", "400", state);
  }
  if (phase === "refusing") refuse(turn);
}

/** The nonce is claimed alone, behind whoever has it in an open transaction. */
function refuse({ state, by, rules, go, answer }: Turn): void {
  const { isCopy } = state.requests[by]!;
  const { bugs } = rules;
  if (bugs.lateStatement === true) {
    go("a late statement of its handler commits by itself", pay(state, rules), { fair: false });
  }
  if (isCopy && state.requests.some((other) => other.isCopy && hasLock(other))) return;
  if (isCopy && state.isNonceUsed && bugs.replayOverlooked !== true) {
    answer("a replay has used its nonce meanwhile: 503", "503", state);
  } else answer("its nonce is claimed alone: 400", "400", usedNonce(state, by));
}

/** Its handler has forgotten an await, or has written by another connection. */
function leavesNothing({ state, by, rules, take }: Turn): void {
  const own = taken(state.record, by, storeRules(rules));
  const kept = usedNonce(state, by);
  const isIdle = { by, fair: false, isIdle: true } as const;
  if (rules.bugs.nothingWrittenCommits === true) {
    const done = rolledBack({ ...kept, record: end(own, by) }, by);
    take({ ...isIdle, name: "its handler has changed no row: 2xx", told: "2xx" }, endedAs("2xx", done, by));
    return;
  }
  // Without an operator a held key stays held.
  if (!rules.hasOperator) return;
  const held = rolledBack({ ...kept, record: { ...own, state: "held" } }, by);
  take(
    { ...isIdle, name: "its handler has changed no row; its key is held: 503", told: "503" },
    endedAs("503", held, by),
  );
}

/** Its handler has settled while the statement that pays has no answer, and fails behind that. */
function leavesStatement({ state, by, rules, take, answer }: Turn): void {
  const gone = rolledBack(state, by);
  if (rules.bugs.unansweredIgnored !== true) {
    answer("a statement has no answer when its handler settles; ROLLBACK: 500", "500", gone, false);
    return;
  }
  const done = rolledBack(
    usedNonce({ ...state, record: end(taken(state.record, by, storeRules(rules)), by) }, by),
    by,
  );
  const step = { by, fair: false, told: "2xx", isOnItsWay: true } as const;
  take(
    { ...step, name: "a statement has no answer when its handler settles; COMMIT: 2xx" },
    endedAs("2xx", done, by),
  );
}

/** A COMMIT of its handler's, or a statement that commits what is open, as a change of a table's definition does on MariaDB. */
function commitsEarly({ state, by, rules, take }: Turn): void {
  const isPaid = state.requests[by]!.phase === "paid";
  // Without an operator a held key stays held.
  if (!isPaid && !rules.hasOperator) return;
  const own = begunBy(state, by, rules);
  const record = rules.bugs.doneFirst === true ? end(own, by) : own;
  const after = change(usedNonce({ ...state, record }, by), by, { phase: "early", transaction: "none" });
  const step = { by, fair: false, isEarly: true, isAlone: true } as const;
  if (isPaid) take({ ...step, name: "its handler sends COMMIT itself" }, pay(after, rules));
  else take({ ...step, name: "a statement of its handler commits what is open" }, after);
}

/** The row of a key as begin() writes it: a lease for what commits too early, and an operator behind it. */
function begunBy({ record }: TransactionState, by: number, rules: TransactionRules): KeyRecord {
  return { ...taken(record, by, storeRules(rules)), recovery: "hold" };
}

/** What has committed of nonce and key tells that something has; a last statement finds another transaction, or none. */
function endsBehindItsCommit({ state, by, rules, take, answer }: Turn): void {
  const { record } = state;
  if (rules.bugs.heldNotAsked === true) {
    answer("its handler refuses behind its own COMMIT: 400", "400", state);
    return;
  }
  const isOwn = record.state === "running" && record.owner === by;
  const held = isOwn ? { ...record, state: "held" as const, isExpired: false } : record;
  const after = { ...state, record: held };
  answer("its handler refuses behind its own COMMIT; its key is held: 503", "503", after);
  answer("the last statement finds another transaction, or none; its key is held: 500", "500", after, false);
  const alone = { by, fair: false, told: "500", isAlone: true } as const;
  // Its tx is closed before the lease ends.
  const isOpen = !record.isExpired || rules.bugs.leaseTooShort === true;
  if (isOwn && isOpen && state.payments === 0) {
    const name = "its handler pays behind that, which commits by itself; its key is held: 500";
    take({ ...alone, name }, endedAs("500", pay(after, rules), by));
  }
}

/** In one step: a request that gets in between pays as well, and no code of ours can keep a handler from that. */
function paysAlone(turn: Turn): void {
  const name =
    "a deadlock ends its transaction; its handler pays, and commits by itself; its key is held: 500";
  const step = { name, by: turn.by, fair: false, told: "500", isAlone: true } as const;
  turn.take(step, endedAs("500", pay(heldAfterEnd(turn), turn.rules), turn.by));
}

/** What the last statement leaves where the transaction had ended: nobody can know what has committed since. */
function heldAfterEnd({ state, by, rules }: Turn): TransactionState {
  const after = rolledBack(state, by);
  const { record } = after;
  if (record.state !== "free" || rules.bugs.absentKeyFree === true) return after;
  return { ...after, record: { ...taken(record, by, storeRules(rules)), state: "held" } };
}

/** Nonce and key in one call, behind whoever has them in an open transaction. */
function begin({ state, by, rules, go, answer }: Turn): void {
  const { record, requests, isNonceUsed } = state;
  const { bugs, recovery } = rules;
  const { isCopy } = requests[by]!;
  answer("a lock comes too late, or no connection: 503", "503", state, false);
  if (isCopy && requests.some((other) => other.isCopy && hasLock(other))) return;
  if (isCopy && isNonceUsed) {
    answer("its nonce was used before: 401", "401", state);
    return;
  }
  const kept = usedNonce(state, by);
  if (isLocked(state) && bugs.rowNotLocked !== true) {
    if (bugs.uncommittedRead === true) answer("reads a key that is done: 409", "409", kept);
    return;
  }
  const open = change(state, by, { phase: "begun", transaction: "open" });
  const isOver = record.state === "running" && record.isExpired && bugs.expiredIgnored !== true;
  const isRerun = recovery === "rerun" && (record.recovery === "rerun" || bugs.rerunOfTransaction === true);
  if (
    record.state === "free" ||
    (isOver && isRerun) ||
    (record.state === "done" && bugs.doneTakenOver === true)
  ) {
    go("begins: nonce and key are written", open, { told: "begun" });
  } else if (record.state === "done") {
    answer("finds the key done: 409", "409", kept);
  } else {
    const held = { ...record, state: "held", isExpired: false } as const;
    answer("finds the key run or held: 503", "503", isOver ? { ...kept, record: held } : kept);
  }
}

/** The ways in which a COMMIT ends. `done`: the state, but for the payment, when it takes effect. */
function commit({ state, by, rules, go, answer }: Turn, done: TransactionState): void {
  const committed = pay(change(done, by, { phase: "unsure", transaction: "none" }), rules);
  answer("COMMIT is answered: 2xx", "2xx", committed);
  go("COMMIT, and its answer is lost", committed, { fair: false });
  const late = change(state, by, { phase: "unsure", transaction: "committing" });
  go("COMMIT is under way, and the line is lost", late, { fair: false });
}

/** A handler of lease mode acts elsewhere, and the guard records that afterwards. */
function leaseSteps(turn: Turn): void {
  const { state, by, rules, go, answer } = turn;
  const { record, requests } = state;
  const { phase } = requests[by]!;
  const own = storeRules(rules);
  const doubt = rules.recovery === "hold" ? "holding" : "releasing";
  if (phase === "running") {
    go("its handler calls the bank, which pays", pay(change(state, by, { phase: "paid" }), rules));
    go("the bank is not reached", change(state, by, { phase: doubt }), { fair: false });
    go("its handler says that nothing has happened", change(state, by, { phase: "releasing" }), {
      fair: false,
    });
  }
  if (phase === "paid") go("the bank's answer is lost", change(state, by, { phase: doubt }), { fair: false });
  if (phase === "sent") claimUnderLease(turn);
  if (isLocked(state)) return;
  if (phase === "decided") {
    const written = { ...state, record: taken(record, by, own) };
    go("the store writes the claim that it had decided", change(written, by, { phase: "running" }), {
      told: "acquired",
    });
  }
  if (phase === "running" || phase === "paid") {
    const renewed = heartbeat(record, by, own);
    if (renewed.record !== record)
      go("renews the lease", { ...state, record: renewed.record }, { told: "ok" });
  }
  if (phase === "paid") {
    const { told, record: after } = complete(record, by, own);
    if (told === "ok") answer("records its payment: 2xx", "2xx", { ...state, record: after });
    else answer("finds its key lost: 503", "503", state);
  }
  if (phase === "releasing" || phase === "holding") {
    const { record: after } = (phase === "holding" ? hold : release)(record, by, own);
    answer(`${phase === "holding" ? "holds" : "releases"} the key: 503`, "503", { ...state, record: after });
  }
}

function claimUnderLease({ state, by, rules, go, answer }: Turn): void {
  const { record } = state;
  const claimed = claim(record, by, storeRules(rules));
  if (isLocked(state)) {
    if (rules.bugs.claimBeforeLock !== true || claimed.told !== "acquired") return;
    go("the store decides its claim, and waits for the lock", change(state, by, { phase: "decided" }));
    return;
  }
  const after = { ...state, record: claimed.record };
  if (claimed.told === "acquired") {
    go("its claim: acquired", change(after, by, { phase: "running" }), { told: "acquired" });
  } else if (record.state === "done") answer("its claim finds the key done: 409", "409", after);
  else answer("its claim finds the key run or held: 503", "503", after);
}

function faults({ state, by, rules, go }: Turn): void {
  const { phase, transaction } = state.requests[by]!;
  const isAlive = phase !== "dead";
  if (isAlive) {
    go("its process is killed, or stands still for good", dead(state, by), { fair: false });
  }
  if (transaction === "committing") {
    const next = taken(state.record, by, storeRules(rules));
    const done = pay(usedNonce({ ...state, record: end(next, by) }, by), rules);
    go("its COMMIT arrives late", rolledBack(done, by, phase));
  }
  if (transaction === "none" || (rules.bugs.idleForEver === true && !isAlive)) return;
  const left = phase === "unsure" || phase === "releasing" || !isAlive ? phase : "cut";
  go("the server ends its transaction", rolledBack(state, by, left), { fair: !isAlive });
  if (isAlive && transaction === "open") {
    go("a conflict rolls back, and all runs again", rolledBack(state, by, "sent"), { fair: false });
  }
}

function leaseEnds(state: TransactionState, take: Take): void {
  const { record, requests } = state;
  if (record.state !== "running" || record.isExpired) return;
  const fair = record.owner === nobody || requests[record.owner]!.phase === "dead";
  take({ name: "the lease ends", fair }, { ...state, record: { ...record, isExpired: true } });
}

function operatorAndPruner(state: TransactionState, rules: TransactionRules, take: Take): void {
  const { record, decision, payments } = state;
  // Of requests an operator knows whether they live, and whether they may still act outside.
  const attempts = state.requests.map(({ phase, transaction }) => ({
    ...idleAttempt,
    guard: phase === "none" || (phase === "dead" && transaction === "none") ? phase : ("running" as const),
    handler: phase === "running" ? ("begun" as const) : ("none" as const),
  }));
  operatorSteps({ record, decision, payments, attempts }, storeRules(rules), (step, after) => {
    // A row of a key may be locked here that is free, and a decision about it be taken back.
    if (isLocked(state) && after.record !== record) return;
    const { name, fair, decides } = step;
    const decided = { record: after.record, decision: after.decision, payments: after.payments };
    take({ name, fair, decides }, { ...state, ...decided });
  });
  if (record.state !== "free" || record.fence === 0 || isLocked(state)) return;
  const fence = rules.bugs.pruningForgetsFences === true ? 0 : record.fence;
  const pruned = { ...state, record: { ...record, fence, isDecided: false } };
  take({ name: "a free key is pruned", fair: false }, pruned);
}

function rolledBack(
  state: TransactionState,
  by: number,
  phase = state.requests[by]!.phase,
): TransactionState {
  const after = change(state, by, { phase, transaction: "none" });
  return phase === "dead" ? endedAs("503", after, by) : after;
}

function dead(state: TransactionState, by: number): TransactionState {
  // Nobody has heard anything.
  return endedAs("503", state, by);
}

function pay(state: TransactionState, { recovery }: TransactionRules): TransactionState {
  return { ...state, payments: handlerUnder(recovery) === "idempotent" ? 1 : state.payments + 1 };
}

function usedNonce(state: TransactionState, by: number): TransactionState {
  return state.requests[by]!.isCopy ? { ...state, isNonceUsed: true } : state;
}
