import { afterEach, expect, test } from "@jest/globals";
import { onTraceEnd, traces } from "@countersign/core";
import type { TransactionFault } from "@countersign/idempotency";
import { transactionBroken } from "../../src/refusals.ts";
import { is, keys, scripted, type Script } from "./scripted.ts";

const ends: (() => void)[] = [];

afterEach(() => {
  while (ends.length > 0) ends.pop()?.();
});

/** The steps of one transaction, with their outcomes, as a subscriber of `countersign:store` hears of them. */
async function tracedSteps(script: Script, mode?: "sync"): Promise<readonly string[]> {
  const steps: string[] = [];
  ends.push(
    onTraceEnd(traces.store, ({ engine, step, outcome, durationMs }) => {
      if (engine === "scripted") steps.push(`${step} ${outcome} ${typeof durationMs}`);
    }),
  );
  const { run } = scripted(script, mode && { mode });
  await run({ keys, req: {} }).catch(() => {});
  return steps.map((step) => step.replace(/ number$/, ""));
}

const first = (fault: TransactionFault) => (call: number) => (call === 1 ? is(fault)() : undefined);
const broken = () => transactionBroken("it was rolled back");

test.each<[string, Script, readonly string[], "sync"?]>([
  ["what works", {}, ["begin ok", "keep ok", "commit ok"]],
  ["what works in one turn", {}, ["begin ok", "keep ok", "commit ok"], "sync"],
  [
    "a conflict at COMMIT",
    { commit: first("conflict") },
    ["begin ok", "keep ok", "commit conflict", "hold ok", "repeat ok", "begin ok", "keep ok", "commit ok"],
  ],
  [
    "a conflict at begin",
    { begin: first("conflict") },
    ["begin conflict", "repeat ok", "begin ok", "keep ok", "commit ok"],
  ],
  ["a lock of somebody else", { begin: first("locked") }, ["begin locked"]],
  [
    "a deferred constraint",
    { commit: first("refused") },
    ["begin ok", "keep ok", "commit refused", "hold ok"],
  ],
  [
    "a handler that broke its transaction",
    { commit: broken },
    ["begin ok", "keep ok", "commit refused", "hold ok"],
  ],
  ["a lost reply to COMMIT", { commit: () => new Error("lost") }, ["begin ok", "keep ok", "commit error"]],
  ["a handler that throws", { work: () => new Error("no") }, ["begin ok", "probe ok", "hold ok"]],
  ["a handler that swallowed an error", { keep: broken }, ["begin ok", "keep refused", "hold ok"]],
  ["an engine that is gone", { begin: first("unavailable") }, ["begin error"]],
  ["an engine that refuses at begin", { begin: first("refused") }, ["begin error"]],
])(
  "%s is told to subscribers, and no fault of others is one of the store",
  async (_what, script, steps, ...[mode]) => {
    expect(await tracedSteps(script, mode)).toEqual(steps);
  },
);
