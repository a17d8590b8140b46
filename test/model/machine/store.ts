// The store of the machine. What follows which row is decided by the code that runs in every table of keys, life.ts; a bug of the store is
// a row or a request that is not the true one.
import {
  completion,
  decideClaim,
  decideHold,
  decideRelease,
  decideReopen,
  decideResolve,
  isCompletedBy,
  renewal,
  type OwnerStep,
  type SeenRow,
} from "../../../packages/kernel/idempotency/dist/life.js";
import type { Rules } from "./configuration.ts";
import { type Decision, type KeyRecord, nobody } from "./state.ts";

/** The answer to a step of the store, and the record as it leaves it: the same object when it changes nothing. */
export interface Reply {
  readonly told: "acquired" | "refused" | "ok" | "lost";
  readonly record: KeyRecord;
}

/** The record as the code under test reads it: times are 1 ms or over. A bug is a row, or a request, that is not the true one. */
function rowOf({ state, owner, fence, isExpired, recovery, isDecided }: KeyRecord): SeenRow {
  const decision = { outcome: "done", fence, reason: "", at: 0 } as const;
  return {
    state,
    token: String(owner),
    fence,
    fingerprint: "",
    reason: "",
    recovery,
    remainingMs: isExpired ? 0 : 1,
    version: 1,
    nowMs: 0,
    ...(isDecided ? { decision } : {}),
  };
}

export function claim(record: KeyRecord, by: number, { recovery, bugs }: Rules): Reply {
  const isOwn = record.owner === by;
  const row = {
    ...rowOf(record),
    ...(isOwn && bugs.claimForgetsItself === true ? { token: "somebody else" } : {}),
    ...(!isOwn && bugs.takeoverOfLiveRun === true && record.state === "running" ? { remainingMs: 0 } : {}),
    ...(bugs.rerunUnderHold === true ? { recovery: "rerun" as const } : {}),
  };
  const { write, reply } = decideClaim(row, {
    token: String(by),
    fingerprint: "",
    leaseMs: 1,
    recovery: bugs.rerunUnderHold === true ? "rerun" : recovery,
  });
  if (write === undefined) return { told: "refused", record };
  if (write.state === "held")
    return { told: "refused", record: { ...record, state: "held", isExpired: false } };
  if (reply(record.fence).status !== "acquired") return { told: "refused", record };
  if (write.token !== undefined) return { told: "acquired", record: take(record, by, { recovery, bugs }) };
  return { told: "acquired", record: renewed(record) };
}

function renewed(record: KeyRecord): KeyRecord {
  return record.isExpired ? { ...record, isExpired: false } : record;
}

/** The record under a new owner, whatever it was. */
export function take(
  { fence, generation }: KeyRecord,
  by: number,
  { recovery, bugs }: Pick<Rules, "recovery" | "bugs">,
): KeyRecord {
  // A sequence that was set back hands out a fence of before.
  const next = bugs.fencesGoBack === true ? Math.max(1, fence) : fence + 1;
  return {
    state: "running",
    owner: by,
    fence: next,
    isExpired: false,
    recovery,
    isDecided: false,
    formerOwner: nobody,
    generation: generation + 1,
    endedBy: nobody,
    orphanAnswer: "none",
  };
}

export function heartbeat(record: KeyRecord, by: number, { bugs }: Rules): Reply {
  if (!isOwnerIn(record, by, renewal(1), bugs.heartbeatOfAnyToken)) return lost(record);
  return { told: "ok", record: renewed(record) };
}

export function complete(record: KeyRecord, by: number, { bugs }: Rules): Reply {
  const { completeOfAnyToken: isAnyToken } = bugs;
  if (isOwnerIn(record, by, completion(1), isAnyToken)) return { told: "ok", record: end(record, by) };
  const token = isAnyToken === true ? String(record.owner) : String(by);
  return isCompletedBy(token, rowOf(record)) ? { told: "ok", record } : lost(record);
}

/** What a table compares before it writes an owner's step. */
function isOwnerIn(
  { state, owner }: KeyRecord,
  by: number,
  { from }: OwnerStep,
  isAnyToken: true | undefined,
): boolean {
  return from.includes(state) && (owner === by || isAnyToken === true);
}

export function end(record: KeyRecord, by: number): KeyRecord {
  return { ...record, state: "done", isExpired: false, endedBy: by };
}

export function release(record: KeyRecord, by: number, { bugs }: Rules): Reply {
  const token = bugs.releaseOfAnyToken === true ? record.owner : by;
  const { write } = decideRelease(rowOf(record), String(token), { retentionMs: 1, fenceMemoryMs: 1 });
  return write === undefined ? lost(record) : { told: "ok", record: free(record) };
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
  const token = bugs.holdOfAnyToken === true ? record.owner : by;
  const { write } = decideHold(rowOf(record), String(token), "in doubt");
  return write === undefined
    ? lost(record)
    : { told: "ok", record: { ...record, state: "held", isExpired: false } };
}

/** A token that no attempt has, and no decision before. */
const ofOperator = "operator";

/** An operator's decision. It takes the key from its owner: the record bears a token that nobody has. */
export function resolve(record: KeyRecord, { outcome, fence }: Decision, { bugs }: Rules): Reply {
  const row = rowOf(record);
  if (bugs.resolveOfLiveRun === true && record.state === "running") Object.assign(row, { remainingMs: 0 });
  const { write } = decideResolve(
    row,
    outcome === "released" ? "released" : "done",
    { token: ofOperator, fence: bugs.resolveWithoutFence === true ? record.fence : fence },
    1,
  );
  if (write === undefined) return lost(record);
  const formerOwner = record.owner;
  if (write.state === "free")
    return { told: "ok", record: { ...free(record), isDecided: true, formerOwner } };
  const done: KeyRecord = {
    ...record,
    state: "done",
    isExpired: false,
    isDecided: true,
    formerOwner,
    endedBy: nobody,
  };
  if (bugs.resolveKeepsToken === true || write.token !== ofOperator) return { told: "ok", record: done };
  return { told: "ok", record: { ...done, owner: nobody, orphanAnswer: "none" } };
}

/**
 * An operator takes a decision back, as long as nothing ran on it. Nobody has the token of the record, and a decision that is still on
 * its way is about the fence of before.
 */
export function reopen(record: KeyRecord, { fence }: Decision, { bugs }: Rules): Reply {
  const isTaken = bugs.reopenWithoutFence === true && record.state !== "held";
  const row = rowOf({
    ...record,
    isDecided: isTaken || mayReopen(record, bugs),
    ...(isTaken ? { state: "free", isExpired: false } : {}),
  });
  const { write } = decideReopen(row, { token: ofOperator, fence: isTaken ? record.fence : fence });
  if (write === undefined) return lost(record);
  const { formerOwner, generation } = record;
  const raises = write.raisesFence === true && bugs.reopenKeepsFence !== true;
  const held: KeyRecord = {
    ...free(record),
    state: "held",
    owner: bugs.reopenRevivesToken === true || write.token !== ofOperator ? formerOwner : nobody,
    fence: raises ? record.fence + 1 : record.fence,
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
