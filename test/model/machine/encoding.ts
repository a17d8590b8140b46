import { type Attempt, type Decision, guards, handlers, type KeyRecord, type State } from "./state.ts";

const { fromCharCode } = String;
const guardCodes = codesOf(guards);
const handlerCodes = codesOf(handlers);
const recordCodes = codesOf(["free", "running", "held", "done"]);
const answerCodes = codesOf(["none", "kept", "failed"]);
const foundCodes = codesOf(["none", "own", "other"]);
const outcomeCodes = codesOf(["released", "done", "paysOnOk", "reopened"]);

function codesOf(words: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(words.map((word, code) => [word, code]));
}

/**
 * Attempts are told apart by what they do and have, not by their place: states that differ in their order are one. So are states
 * that differ in a fence alone, since nothing but its equality with the record's is ever asked: that is why the number of retries
 * needs no bound.
 */
export function encodeState({ record, attempts, decision, payments }: State): string {
  const codes = [
    (((recordCodes[record.state]! * 2 + bit(record.isDecided)) * 2 + bit(record.isExpired)) * 4 + payments) *
      4 +
      foundCodes[record.orphanAnswer]!,
    decision === undefined ? 0 : 1 + decisionCode(decision, record),
  ];
  const sorted = attempts.map((attempt, by) => attemptCode(attempt, { record, by }));
  sorted.sort((a, b) => a - b);
  for (const code of sorted) codes.push(code >> 12, code & 0xfff);
  return fromCharCode(...codes);
}

function decisionCode({ outcome, fence, generation }: Decision, record: KeyRecord): number {
  const isAbout = bit(fence === record.fence) * 2 + bit(generation === record.generation);
  return outcomeCodes[outcome]! * 4 + isAbout;
}

function attemptCode(attempt: Attempt, { record, by }: { record: KeyRecord; by: number }): number {
  let code = guardCodes[attempt.guard]! * 8 + handlerCodes[attempt.handler]!;
  code = code * 2 + bit(attempt.isClaimSent);
  code = code * 2 + bit(attempt.isGranted);
  code = code * 2 + bit(attempt.isTooLate);
  code = code * 2 + bit(attempt.isAborted);
  code = code * 2 + bit(attempt.isOverruled);
  code = code * 2 + bit(attempt.isDecided);
  code = code * 4 + answerCodes[attempt.answer]!;
  code = code * 2 + bit(record.formerOwner === by);
  code = code * 2 + bit(record.owner === by);
  return code * 2 + bit(record.endedBy === by);
}

// Inside jest a global costs a hundred times as much as a constant of the module.
function bit(flag: boolean): number {
  return flag ? 1 : 0;
}
