import { afterEach, expect, test } from "@jest/globals";
import { onTraceEnd, traces } from "@countersign/core";
import type { TransactionFault, TransactionStore } from "@countersign/idempotency";
import { transactionBroken } from "../../src/refusals.ts";
import { answerOf, type Steps } from "../../src/transactions/steps.ts";
import { Transactor } from "../../src/transactions/transactor.ts";

const engine = "traced";
const keys = [{ key: "k", token: "t", fingerprint: "f" }];
const faults = ["conflict", "locked", "unavailable", "refused"] as const;
const ends: (() => void)[] = [];

afterEach(() => {
  while (ends.length > 0) ends.pop()?.();
});

/** What each call does, by its number from 1: an error of the engine, or nothing. */
interface Script {
  readonly mode?: "async" | "sync";
  readonly begin?: (call: number) => TransactionFault | undefined;
  readonly commit?: (call: number) => TransactionFault | "lost" | "broken" | undefined;
  readonly keep?: "broken";
  /** What the handler does. */
  readonly pay?: () => unknown;
}

/** The steps of one transaction, with their outcomes, as a subscriber of `countersign:store` hears of them. */
async function tracedSteps({ mode = "async", begin, commit, keep, pay }: Script): Promise<readonly string[]> {
  const steps: string[] = [];
  ends.push(
    onTraceEnd(traces.store, ({ engine: its, step, outcome, durationMs }) => {
      if (its === engine) steps.push(`${step} ${outcome} ${typeof durationMs}`);
    }),
  );
  let begun = 0;
  let committed = 0;
  const check = (fault: string | undefined): void => {
    if (fault === "broken") throw transactionBroken("it was rolled back");
    if (fault !== undefined) throw new Error(fault);
  };
  const transactions: TransactionStore<object> = {
    engine,
    mode,
    retentionMs: 1,
    async run(work) {
      const result = mode === "sync" ? work({}) : await work({});
      committed += 1;
      check(commit?.(committed));
      return await result;
    },
    begin() {
      begun += 1;
      check(begin?.(begun));
      const answer = { nonce: "fresh", keys: [{ status: "begun" }] } as const;
      return mode === "sync" ? answer : Promise.resolve(answer);
    },
    keep: () => check(keep),
    undo: () => undefined,
    faultOf: ({ message }: Error) => faults.find((fault) => fault === message),
  };
  const times = { waitMs: 0, storeTimeoutMs: 20_000, idleTimeoutMs: 1_000, transactionTimeoutMs: 60_000 };
  const others = { maxWaiters: 10, retryAfterSeconds: 7, recovery: "hold" } as const;
  const transactor = new Transactor(
    { transactions, nonces: { claim: () => "fresh" } },
    { ...times, ...others },
  );
  const run = transactor.run({ keys, req: {} }, ({ tx }) =>
    transactor.behindSavepoint(tx, keys, false, function* work(): Steps<string> {
      yield* answerOf(pay?.());
      return "paid";
    }),
  );
  await run.catch(() => {});
  return steps.map((step) => step.replace(/ number$/, ""));
}

const first = (fault: TransactionFault) => (call: number) => (call === 1 ? fault : undefined);

test.each<[string, Script, readonly string[]]>([
  ["what works", {}, ["begin ok", "keep ok", "commit ok"]],
  ["what works in one turn", { mode: "sync" }, ["begin ok", "keep ok", "commit ok"]],
  [
    "a conflict at COMMIT",
    { commit: first("conflict") },
    ["begin ok", "keep ok", "commit conflict", "repeat ok", "begin ok", "keep ok", "commit ok"],
  ],
  [
    "a conflict at begin",
    { begin: first("conflict") },
    ["begin conflict", "repeat ok", "begin ok", "keep ok", "commit ok"],
  ],
  ["a lock of somebody else", { begin: first("locked") }, ["begin locked"]],
  ["a deferred constraint", { commit: first("refused") }, ["begin ok", "keep ok", "commit refused"]],
  [
    "a handler that broke its transaction",
    { commit: () => "broken" },
    ["begin ok", "keep ok", "commit refused"],
  ],
  ["a lost reply to COMMIT", { commit: () => "lost" }, ["begin ok", "keep ok", "commit error"]],
  [
    "a handler that throws",
    { pay: () => Promise.reject(new Error("no")) },
    ["begin ok", "undo ok", "commit ok"],
  ],
  [
    "a handler that swallowed an error",
    { keep: "broken" },
    ["begin ok", "keep refused", "undo ok", "commit ok"],
  ],
  ["an engine that is gone", { begin: first("unavailable") }, ["begin error"]],
  ["an engine that refuses at begin", { begin: first("refused") }, ["begin error"]],
])("%s is told to subscribers, and no fault of others is one of the store", async (_what, script, steps) => {
  expect(await tracedSteps(script)).toEqual(steps);
});
