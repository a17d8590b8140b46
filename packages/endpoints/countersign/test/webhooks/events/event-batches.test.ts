import { describe, expect, test } from "@jest/globals";
import {
  memoryIdempotencyStore,
  type TransactionFault,
  type TransactionStore,
  type TransactionStores,
} from "@countersign/idempotency";
import { createWebhookHandler } from "countersign/webhooks";
import { steadyTest } from "@countersign/test-support/runs/steadily.ts";
import { transactionBroken } from "@countersign/idempotency/store";
import { envelope, collectNotices, outcomes, sleep } from "./event-kit.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

class EngineError extends Error {
  readonly fault: TransactionFault;
  constructor(fault: TransactionFault) {
    super(fault);
    this.fault = fault;
  }
}

const fails = (fault: TransactionFault) => () => Promise.reject(new EngineError(fault));
const broken = transactionBroken("it sent COMMIT itself");
const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `ev_${index + 1}`);

interface Scene {
  /** What an event's handler does. */
  readonly work?: (id: string, call: number) => unknown;
  /** What the last statement behind an event does. */
  readonly keep?: (id: string) => unknown;
  /** What the look at a transaction does whose event has failed. */
  readonly probe?: (id: string) => unknown;
  /** What COMMIT does, by its number from 1. */
  readonly commit?: (number: number) => unknown;
  /** What the look after a rollback does. */
  readonly hold?: () => unknown;
  readonly transactionTimeoutMs?: number;
}

/** A receiver of webhooks on an engine that is all script. */
function receiver({
  work = () => {},
  keep = () => {},
  probe = () => {},
  commit = () => {},
  hold = () => {},
  transactionTimeoutMs = 60_000,
}: Scene) {
  const runs: string[] = [];
  const failed: string[] = [];
  /** The numbers of events that came to each COMMIT. */
  const commits: number[] = [];
  let begun = 0;
  const transactions: TransactionStore<object, "async"> = {
    engine: "scripted",
    mode: "async",
    retentionMs: 72 * 3_600_000,
    async run(inner) {
      begun += 1;
      const tx = { kept: 0 };
      const result = await inner(tx);
      commits.push(tx.kept);
      await commit(commits.length);
      return result;
    },
    begin: (_tx, { keys }) =>
      Promise.resolve({ nonce: "fresh", keys: keys.map(() => ({ status: "begun" }) as const) }),
    async keep(tx) {
      await keep(runs.at(-1) ?? "");
      Object(tx).kept += 1;
    },
    assertOpen: async () => void (await probe(runs.at(-1) ?? "")),
    free: async () => {},
    async hold() {
      await hold();
      return new Set();
    },
    faultOf: (error) => (error instanceof EngineError ? error.fault : undefined),
  };
  const stores: TransactionStores<object, "async"> = {
    idempotency: memoryIdempotencyStore({ retentionMs: 72 * 3_600_000 }),
    nonces: { claim: () => "fresh" },
    transactions,
  };
  const handler = createWebhookHandler({
    stores,
    fallback({ event_id: id }) {
      runs.push(id);
      return work(id, runs.filter((other) => other === id).length);
    },
    onError: ({ event_id: id, outcome }) => void failed.push(`${id} ${outcome}`),
    waitMs: 0,
    transactionTimeoutMs,
  });
  return {
    runs,
    failed,
    commits,
    begun: () => begun,
    handle: async (names: readonly string[]) => outcomes(await handler.handle(envelope(...names))),
  };
}

describe("a batch of events in one transaction", () => {
  test.each<[string, (id: string) => boolean, number]>([
    ["its first event", (id) => id === "ev_1", 1],
    ["its last event", (id) => id === "ev_50", 1],
    ["each of its events", () => true, 50],
  ])("runs each event once more, alone, when %s waits for a locked row", async (_which, isLocked, busy) => {
    let waits = 0;
    const { handle, runs, begun } = receiver({
      work(id) {
        if (!isLocked(id)) return undefined;
        waits += 1;
        return fails("locked")();
      },
    });
    const ended = await handle(ids(50));
    expect(ended.filter((outcome) => outcome === "busy")).toHaveLength(busy);
    expect(ended.filter((outcome) => outcome === "done")).toHaveLength(50 - busy);
    expect(begun()).toBe(51);
    expect(runs.length).toBeLessThanOrEqual(100);
    expect(waits).toBe(busy + 1);
  });

  test("goes on with what comes behind a spoilt batch in one transaction", async () => {
    const { handle, commits } = receiver({ work: (id) => id === "ev_3" && fails("locked")() });
    const ended = await handle(ids(90));
    expect(ended.filter((outcome) => outcome !== "done")).toEqual(["busy"]);
    expect(commits).toEqual([...Array.from({ length: 49 }, () => 1), 40]);
  });

  test.each(["ev_1", "ev_2", "ev_5"])(
    "rolls back whole when %s fails, which is not run again; the others run alone",
    async (bad) => {
      const { handle, commits, failed, runs } = receiver({
        work: (id) => id === bad && Promise.reject(new Error("no such account")),
      });
      const ended = await handle(ids(5));
      expect(ended).toEqual(ids(5).map((id) => (id === bad ? "failed" : "done")));
      expect(failed).toEqual([`${bad} failed`]);
      expect(commits).toEqual([1, 1, 1, 1]);
      expect(runs.filter((id) => id === bad)).toEqual([bad]);
    },
  );

  test("begins nothing more when the engine is gone while its events run alone", async () => {
    const { handle, begun, failed } = receiver({
      work: (id, call) => {
        if (id === "ev_2" && call === 1) return fails("locked")();
        return id === "ev_3" && fails("unavailable")();
      },
      probe: (id) => id === "ev_3" && fails("unavailable")(),
    });
    const down = ["unavailable", "unavailable", "unavailable"];
    expect(await handle(ids(5))).toEqual(["done", "done", ...down]);
    expect(begun()).toBe(4);
    expect(failed).toEqual(["ev_3 unavailable"]);
  });

  test("leaves its events to the next delivery when its COMMIT is unknown", async () => {
    const { handle, runs, commits } = receiver({
      commit: () => Promise.reject(new Error("read ECONNRESET")),
    });
    expect(new Set(await handle(ids(50)))).toEqual(new Set(["in-doubt"]));
    expect(runs).toEqual(ids(50));
    expect(commits).toEqual([50]);
    expectWarning(/^\[commit-unknown\] .* has a COMMIT without a reply: it is done, or comes again$/, 50);
  });

  test("leaves its events to the next delivery when the store does not say what of a failed one has committed", async () => {
    const notices = collectNotices();
    const { handle, runs, failed } = receiver({
      work: (id) => id === "ev_2" && Promise.reject(new Error("no such account")),
      hold: () => Promise.reject(new Error("read ECONNRESET")),
    });
    expect(await handle(ids(3))).toEqual(["in-doubt", "in-doubt", "in-doubt"]);
    expect(runs).toEqual(["ev_1", "ev_2"]);
    expect(failed).toEqual(ids(3).map((id) => `${id} in-doubt`));
    // Each may have committed with what its handler, or another one, has committed by itself.
    expect(notices.map(({ code, message }) => [code, message.split(" has ")[0]])).toEqual(
      ids(3).map((id) => ["transaction-unknown", `key "webhook-event:${id}"`]),
    );
  });

  test.each<[string, Scene, readonly string[]]>([
    ["a COMMIT without a reply", { commit: () => Promise.reject(new Error("read ECONNRESET")) }, ids(3)],
    ["a broken transaction", { keep: (id) => id === "ev_2" && Promise.reject(broken) }, ["ev_2"]],
  ])("tells an operator of %s, also beside onError", async (what, scene, told) => {
    const notices = collectNotices();
    const { handle } = receiver(scene);
    await handle(ids(3));
    const code = what.startsWith("a COMMIT") ? "commit-unknown" : "transaction-broken";
    expect(notices.map(({ guard, code: its, message }) => [guard, its, message.split(" has ")[0]])).toEqual(
      told.map((id) => ["createWebhookHandler", code, `key "webhook-event:${id}"`]),
    );
  });

  steadyTest("leaves its events to the next delivery when a handler never ends", async () => {
    const { handle, runs, begun } = receiver({
      work: (id) => id === "ev_2" && new Promise(() => {}),
      transactionTimeoutMs: 1_500,
    });
    const ended = await handle(ids(60));
    expect(new Set(ended.slice(0, 50))).toEqual(new Set(["timed-out"]));
    expect(new Set(ended.slice(50))).toEqual(new Set(["busy"]));
    expect(runs).toEqual(["ev_1", "ev_2"]);
    expect(begun()).toBe(1);
  });

  steadyTest("commits before slow events would take the time of its transaction", async () => {
    const { handle, runs, commits } = receiver({
      // Fifty take longer than one transaction may.
      work: () => sleep(50),
      transactionTimeoutMs: 1_500,
    });
    expect(new Set(await handle(ids(50)))).toEqual(new Set(["done"]));
    expect(runs).toEqual(ids(50));
    expect(commits.length).toBeGreaterThan(1);
  });
});
