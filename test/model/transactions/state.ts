import type { Step } from "../machine/explorer.ts";
import { type Decision, initialState, type KeyRecord, nobody } from "../machine/state.ts";
import type { TransactionSwitch } from "./switches.ts";

/** What is explored: one key under requests of both modes. Each place is taken again, without end. */
export interface TransactionRules {
  /** The mode of each place. `lease`: claim, a handler that acts elsewhere, and its record. */
  readonly places: readonly ("transaction" | "lease")[];
  /** For a run whose lease has ended. */
  readonly recovery: "rerun" | "hold";
  readonly hasOperator: boolean;
  /** MariaDB: a deadlock ends the whole transaction, and the next statement begins another one. */
  readonly deadlockEndsAll?: boolean | undefined;
  /** Whether leases have been given up: the runs that there are have nobody who claims again. Default false. */
  readonly leasesAreOver?: boolean | undefined;
  readonly bugs: Readonly<Partial<Record<TransactionSwitch, true>>>;
}

/** One request, the handler that it began, and its transaction. */
export interface Request {
  /**
   * `begun`: nonce and key are written. `paid`: the payment too. `broken`: a statement has failed, and the handler went on. `alone`: the
   * same where the failure ended the transaction, and the payment is in one that the next statement began. `kept`: the last statement is
   * done. `aborted`: and a later one, which nobody awaits, has failed. `unsure`: COMMIT was sent. `cut`: its transaction is gone, which it does not know yet. `refusing`: rolled back, before the nonce
   * is claimed alone. `early`: something has committed what it had written, its handler's own COMMIT or a change of a table's definition. `running`, `paid`, `releasing`, `holding`: of a lease, whose claim a store with
   * a bug has `decided` and not written.
   */
  readonly phase:
    | "none"
    | "sent"
    | "begun"
    | "paid"
    | "broken"
    | "alone"
    | "kept"
    | "aborted"
    | "unsure"
    | "cut"
    | "refusing"
    | "early"
    | "running"
    | "releasing"
    | "holding"
    | "decided"
    | "dead";
  /** As the server has it. Nonce and row of the key are locked meanwhile, but not by a payment that is alone. */
  readonly transaction: "none" | "open" | "committing" | "alone";
  /** Whether it has the bytes of the one request that somebody sends more than once. */
  readonly isCopy: boolean;
}

export interface TransactionState {
  /** What is committed. */
  readonly record: KeyRecord;
  readonly requests: readonly Request[];
  /** Of the request that is sent more than once: whether its nonce is committed, and how many were told something final. */
  readonly isNonceUsed: boolean;
  readonly finalAnswers: number;
  readonly decision: Decision | undefined;
  readonly payments: number;
}

export interface TransactionStep extends Step {
  readonly told?: "begun" | "acquired" | "ok" | "2xx" | "400" | "401" | "409" | "500" | "503" | undefined;
  readonly decides?: Decision | undefined;
  /** Commits a payment in a transaction of the handler's own. */
  readonly isAlone?: true | undefined;
  /** Commits what a transaction has written by then, before its last statement. */
  readonly isEarly?: true | undefined;
  /** A handler has returned that has changed no row. */
  readonly isIdle?: true | undefined;
  /** A handler has settled of which a statement had no answer. */
  readonly isOnItsWay?: true | undefined;
}

export type Take = (step: TransactionStep, after: TransactionState) => void;

const idle: Request = { phase: "none", transaction: "none", isCopy: false };

export function initialTransactions({ places }: TransactionRules): TransactionState {
  const { record } = initialState(1);
  const requests = places.map(() => idle);
  return { record, requests, isNonceUsed: false, finalAnswers: 0, decision: undefined, payments: 0 };
}

/** Of nonce and row of the key; a payment that is alone has neither. */
export function hasLock({ transaction }: Request): boolean {
  return transaction === "open" || transaction === "committing";
}

export function isLocked({ requests }: TransactionState): boolean {
  return requests.some(hasLock);
}

export function change(state: TransactionState, by: number, changes: Partial<Request>): TransactionState {
  const requests = state.requests.slice();
  requests[by] = { ...requests[by]!, ...changes };
  return { ...state, requests };
}

const finals: ReadonlySet<TransactionStep["told"]> = new Set(["2xx", "400", "409"]);

/** The request has been told; its place is free again when the server has nothing of it any more. */
export function endedAs(
  told: TransactionStep["told"],
  state: TransactionState,
  by: number,
): TransactionState {
  const { isCopy, transaction } = state.requests[by]!;
  const isFinal = isCopy && finals.has(told);
  const answered = { ...state, finalAnswers: state.finalAnswers + (isFinal ? 1 : 0) };
  if (transaction !== "none") return change(answered, by, { phase: "dead" });
  const { owner, endedBy, formerOwner } = state.record;
  const forget = (who: number): number => (who === by ? nobody : who);
  const gone = { owner: forget(owner), endedBy: forget(endedBy), formerOwner: forget(formerOwner) };
  return change({ ...answered, record: { ...state.record, ...gone } }, by, idle);
}

export function encodeTransactions(state: TransactionState, { places }: TransactionRules): string {
  const { record, requests, decision } = state;
  const told = requests.map(
    ({ phase, transaction, isCopy }, by) =>
      `${places[by]} ${phase} ${transaction} ${isCopy} ${record.owner === by} ${record.endedBy === by} ${record.formerOwner === by}`,
  );
  const { outcome, fence, generation } = decision ?? {};
  const about = `${outcome} ${fence === record.fence} ${generation === record.generation}`;
  const { isNonceUsed, finalAnswers, payments } = state;
  const key = `${record.state} ${record.isExpired} ${record.recovery} ${record.isDecided} ${record.fence > 0}`;
  told.sort();
  return `${key}|${about}|${isNonceUsed} ${finalAnswers} ${payments}|${told.join("|")}`;
}
