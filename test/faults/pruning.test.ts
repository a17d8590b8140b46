// Row 18: old records are removed while a retry arrives.
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { describeEngines, newKey } from "./engines.ts";
import { pay, startPayer } from "./payers.ts";

const dayMs = 86_400_000;

describeEngines(["memory", "sqlite", "redis", "postgres"], (ground, kind) => {
  test("row 18, pruning while a retry arrives: done is not pruned early", async () => {
    const key = newKey();
    const startMs = Date.now();
    let nowMs = startMs;
    const payer = await startPayer({ engine: ground().engine }, { now: () => nowMs });
    const { store } = payer;
    const retentionMs = Number(store.retentionMs);
    expect(retentionMs).toBeGreaterThanOrEqual(dayMs);
    expect(await pay(payer, key)).toMatchObject({ status: 200 });

    const pruneAndRetry = async () => {
      const pruning = (async () => {
        for (let round = 0; round < 10; round++) await store.prune();
      })();
      const answers = await Promise.all(Array.from({ length: 10 }, () => pay(payer, key)));
      await pruning;
      return answers.map(({ status }) => status);
    };
    expect(await pruneAndRetry()).toEqual(Array(10).fill(409));
    nowMs = startMs + retentionMs - 1;
    expect(await pruneAndRetry()).toEqual(Array(10).fill(409));
    expect(await ground().payments(key)).toBe(1);

    // The same clock past the end: it was the retention that kept the record, and nothing else.
    nowMs = startMs + retentionMs + 1;
    await store.prune();
    expect(await store.read(key)).toBeUndefined();
    expect(kind === "redis" || (await store.prune()) === 0).toBe(true);
  });
});
