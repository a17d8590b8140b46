import type { Rules } from "./configuration.ts";
import { type Decision, hasLock, type KeyRecord, nobody, type State } from "./state.ts";

/** The answer to a step of the store, and the record as it leaves it: the same object when it changes nothing. */
export interface Reply {
  readonly told: "acquired" | "refused" | "ok" | "lost";
  readonly record: KeyRecord;
}

/** Whether a step of another connection has to wait: for the transaction that has the row. */
export function isLocked({ attempts }: State, { bugs }: Rules): boolean {
  return bugs.rowNotLocked !== true && attempts.some(hasLock);
}

export function claim(record: KeyRecord, by: number, rules: Rules): Reply {
  const { state, owner, isExpired } = record;
  const { recovery, bugs } = rules;
  if (state === "done" || state === "held") return { told: "refused", record };
  if (state === "running") {
    if (owner === by && bugs.claimForgetsItself !== true) {
      return { told: "acquired", record: isExpired ? { ...record, isExpired: false } : record };
    }
    if (!isExpired && bugs.takeoverOfLiveRun !== true) return { told: "refused", record };
    if (recovery === "hold" && bugs.rerunUnderHold !== true) {
      return { told: "refused", record: { ...record, state: "held", isExpired: false } };
    }
  }
  return { told: "acquired", record: take(record, by, rules) };
}

/** The record under a new owner, whatever it was. */
export function take({ fence, generation }: KeyRecord, by: number, { bugs }: Rules): KeyRecord {
  // A sequence that was set back hands out a fence of before.
  const next = bugs.fencesGoBack === true ? Math.max(1, fence) : fence + 1;
  return {
    state: "running",
    owner: by,
    fence: next,
    isExpired: false,
    isDecided: false,
    formerOwner: nobody,
    generation: generation + 1,
    endedBy: nobody,
    orphanAnswer: "none",
  };
}

export function heartbeat(record: KeyRecord, by: number, { bugs }: Rules): Reply {
  if (record.state !== "running" || (record.owner !== by && bugs.heartbeatOfAnyToken !== true))
    return lost(record);
  return { told: "ok", record: record.isExpired ? { ...record, isExpired: false } : record };
}

export function complete(record: KeyRecord, by: number, { bugs }: Rules): Reply {
  if (record.owner !== by && bugs.completeOfAnyToken !== true) return lost(record);
  if (record.state === "done") return { told: "ok", record };
  return record.state === "free" ? lost(record) : { told: "ok", record: end(record, by) };
}

/** Whether completeIn() may write `done` into the caller's transaction. */
export function mayCompleteIn({ state, owner }: KeyRecord, by: number, { bugs }: Rules): boolean {
  if (owner !== by) return false;
  return state === "running" || state === "held" || (state === "done" && bugs.completeInTwice === true);
}

export function end(record: KeyRecord, by: number): KeyRecord {
  return { ...record, state: "done", isExpired: false, endedBy: by };
}

export function release(record: KeyRecord, by: number, { bugs }: Rules): Reply {
  if (record.state !== "running" || (record.owner !== by && bugs.releaseOfAnyToken !== true))
    return lost(record);
  return { told: "ok", record: free(record) };
}

/** The release of a claim whose handler never ran: it also takes the key back from where a retry has put it, by its fence. */
export function giveBack(record: KeyRecord, by: number, rules: Rules): Reply {
  if (record.state === "held" && record.owner === by)
    return { told: "ok", record: { ...free(record), isDecided: true } };
  return release(record, by, rules);
}

/** Absent to whoever reads it. The fence stays, for the next owner's to be above it. */
export function free(record: KeyRecord): KeyRecord {
  return {
    ...record,
    state: "free",
    owner: nobody,
    isExpired: false,
    isDecided: false,
    formerOwner: nobody,
    endedBy: nobody,
    orphanAnswer: "none",
  };
}

export function hold(record: KeyRecord, by: number, { bugs }: Rules): Reply {
  if (record.state !== "running" || (record.owner !== by && bugs.holdOfAnyToken !== true))
    return lost(record);
  return { told: "ok", record: { ...record, state: "held", isExpired: false } };
}

/** An operator's decision. It takes the key from its owner: the record bears a token that nobody has. */
export function resolve(record: KeyRecord, { outcome, fence }: Decision, { bugs }: Rules): Reply {
  const isOpen =
    record.state === "held" ||
    (record.state === "running" && (record.isExpired || bugs.resolveOfLiveRun === true));
  if (!isOpen || (fence !== record.fence && bugs.resolveWithoutFence !== true)) return lost(record);
  const formerOwner = record.owner;
  if (outcome === "released")
    return { told: "ok", record: { ...free(record), isDecided: true, formerOwner } };
  const done: KeyRecord = {
    ...record,
    state: "done",
    isExpired: false,
    isDecided: true,
    formerOwner,
    endedBy: nobody,
  };
  if (bugs.resolveKeepsToken === true) return { told: "ok", record: done };
  return { told: "ok", record: { ...done, owner: nobody, orphanAnswer: "none" } };
}

/**
 * An operator takes a decision back, as long as nothing ran on it. Nobody has the token of the record, and a decision that is still on
 * its way is about the fence of before.
 */
export function reopen(record: KeyRecord, { fence }: Decision, { bugs }: Rules): Reply {
  const isIts = fence === record.fence && mayReopen(record, bugs);
  const isTaken = bugs.reopenWithoutFence === true && record.state !== "held";
  if (!isIts && !isTaken) return lost(record);
  const { formerOwner, generation } = record;
  const held: KeyRecord = {
    ...free(record),
    state: "held",
    owner: bugs.reopenRevivesToken === true ? formerOwner : nobody,
    fence: bugs.reopenKeepsFence === true ? record.fence : record.fence + 1,
    generation: generation + 1,
  };
  return { told: "ok", record: held };
}

/** The attempt itself does, by its fence, when an operator has released the key and nobody has had it since. */
export function takeBack(record: KeyRecord, by: number, rules: Rules): Reply {
  if (record.state !== "free" || record.formerOwner !== by) return lost(record);
  const { fence, generation } = record;
  return reopen(record, { outcome: "reopened", fence, generation }, rules);
}

/** Whether there is something to take back: never what an attempt has done. */
export function mayReopen({ state, isDecided }: KeyRecord, bugs: Rules["bugs"]): boolean {
  return isDecided || (state === "done" && bugs.reopenOfOwnDone === true);
}

function lost(record: KeyRecord): Reply {
  return { told: "lost", record };
}
