import type { IdempotencyRecord, KeptDecision, OperatorEntry, ReleasedKey } from "@countersign/idempotency";
import type { CommandIo } from "../command-io.ts";
import { printable } from "../printable.ts";
import { timeAgo } from "./begun-at.ts";
import { shownKey } from "./key-text.ts";

/** What a store knows of a key, also of one that an operator has released. */
export type KnownRecord = IdempotencyRecord | ReleasedKey;

/** Whether the key is as an operator has decided, and no attempt has had it since. */
export function isDecided({ state, fence, decision }: KnownRecord): boolean {
  return (state === "done" || state === "free") && decision?.fence === fence;
}

/** What a list says of an operator's decision, in a few words; nothing where there is none. */
export function decisionMarks({ fence, decision }: KnownRecord): string[] {
  if (decision === undefined) return [];
  const { outcome, reopened } = decision;
  if (reopened !== undefined) return [`${outcome} ${nameOf(decision)}, reopened ${nameOf(reopened)}`];
  const when = decision.fence === fence ? "" : ", before this attempt";
  return [`${outcome} ${nameOf(decision)}${when}`];
}

function nameOf({ by }: OperatorEntry): string {
  return by === undefined ? "by an operator" : `by ${oneLineOf(by)}`;
}

/** The facts of a decision, for people. */
export function decisionFacts(
  { fence, decision }: KnownRecord,
  io: CommandIo,
): readonly (readonly [name: string, text: string])[] {
  if (decision === undefined) return [];
  const about = decision.fence === fence ? "" : `, about fence ${decision.fence}`;
  const { reopened } = decision;
  return [
    ["decided", `${decision.outcome}${about}, ${entryText(decision, io)}`],
    ["held for", oneLineOf(decision.reason)],
    ...noteOf(decision),
    ...(reopened === undefined ? [] : [["reopened", entryText(reopened, io)] as const, ...noteOf(reopened)]),
  ];
}

function entryText(entry: OperatorEntry, io: CommandIo): string {
  return `${nameOf(entry)}, ${timeAgo(entry.at, io.clock() * 1000)}`;
}

function noteOf({ note }: OperatorEntry): (readonly [string, string])[] {
  return note === undefined ? [] : [["note", oneLineOf(note)]];
}

/** What an operator has changed. */
export interface Changed {
  readonly key: string;
  readonly fence: number;
  /** The state before, and why. */
  readonly from: readonly [state: string, reason: string];
  readonly to: string;
  readonly entry: OperatorEntry;
}

/** One line that tells all of a change, to be kept in a ticket or a log. */
export function changedLine({ key, fence, from: [state, reason], to, entry }: Changed): string {
  const { at, by, note } = entry;
  const facts = [
    `was ${state} (${oneLineOf(reason)})`,
    `is ${to}`,
    `by ${by === undefined ? "an operator" : oneLineOf(by)}`,
    ...(note === undefined ? [] : [`note ${printable(JSON.stringify(note))}`]),
  ];
  return `${new Date(at).toISOString()} ${shownKey(key)} at fence ${fence}: ${facts.join(", ")}\n`;
}

/** A decision for JSON: times as text. */
export function decisionJson({ reopened, ...decision }: KeptDecision): object {
  const decided = { ...decision, at: new Date(decision.at).toISOString() };
  return reopened === undefined
    ? decided
    : { ...decided, reopened: { ...reopened, at: new Date(reopened.at).toISOString() } };
}

/** Text of somebody else in one line, fit for a terminal. */
export function oneLineOf(text: string): string {
  return printable(text.replaceAll(/\s+/g, " "));
}
