import { channel } from "node:diagnostics_channel";
import { guardChannel, GuardError, traces } from "@countersign/core";
import { Steps } from "@countersign/core/internal";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { prometheus } from "@countersign/observe/prometheus";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { register, Registry } from "prom-client";
import { liveThrough } from "@countersign/test-support/runs/observed-life.ts";

let registry: Registry;
const ends: (() => void)[] = [];

beforeEach(() => {
  registry = new Registry();
});

// A file before this one may have left a subscriber in the process.
const subscribed = (): boolean[] =>
  [guardChannel, traces.event, traces.store].map(({ hasSubscribers }) => hasSubscribers);
const subscribedBefore = subscribed();

afterEach(() => {
  while (ends.length > 0) ends.pop()?.();
  expect(subscribed()).toEqual(subscribedBefore);
});

/** The samples of a scrape, by their line up to the value. */
async function scrape(): Promise<Map<string, number>> {
  const text = await registry.metrics();
  const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
  );
}

const countsOf = (samples: Map<string, number>, name: string): Record<string, number> =>
  Object.fromEntries(
    [...samples].flatMap(([line, value]) =>
      line.startsWith(`${name}{`) ? [[line.slice(name.length + 1, -1), value]] : [],
    ),
  );

describe("prometheus", () => {
  test("counts and times one of each thing", async () => {
    ends.push(prometheus({ registry }));
    await liveThrough();
    channel("countersign:lease-lost").publish({ guard: "g", key: "k", code: "lease-lost", req: undefined });
    const samples = await scrape();
    expect(countsOf(samples, "countersign_lease_losses_total")).toEqual({
      'guard="g",code="lease-lost"': 1,
    });
    expect(countsOf(samples, "countersign_verdicts_total")).toEqual({
      'guard="httpSignatureVerify",outcome="pass",code="none"': 1,
      'guard="ipAllowlist",outcome="reject",code="signature-mismatch"': 1,
      'guard="exampleGuard",outcome="error",code="unexpected-error"': 1,
    });
    expect(countsOf(samples, "countersign_verdict_seconds_count")).toEqual({
      'guard="httpSignatureVerify"': 1,
      'guard="ipAllowlist"': 1,
      'guard="exampleGuard"': 1,
    });
    expect(samples.get("countersign_signature_age_seconds_sum")).toBe(2.5);
    expect(countsOf(samples, "countersign_notices_total")).toMatchObject({
      'guard="exampleGuard",code="held"': 1,
    });
    expect(countsOf(samples, "countersign_claim_seconds_count")).toMatchObject({
      'guard="exampleGuard",outcome="acquired"': 2,
      'guard="exampleGuard",outcome="done"': 1,
      'guard="exampleGuard",outcome="error"': 1,
    });
    expect(countsOf(samples, "countersign_wait_seconds_count")).toEqual({
      'guard="exampleGuard",outcome="held"': 1,
    });
    expect(countsOf(samples, "countersign_keys_settled_total")).toMatchObject({
      'guard="exampleGuard",outcome="done"': 1,
      'guard="exampleGuard",outcome="held"': 1,
    });
    expect(countsOf(samples, "countersign_store_seconds_count")).toMatchObject({
      'engine="life",step="claim",outcome="error"': 1,
      'engine="life",step="hold",outcome="ok"': 1,
    });
    expect(countsOf(samples, "countersign_event_seconds_count")).toEqual({
      'type="seller.status_changed",outcome="done"': 1,
      'type="seller.status_changed",outcome="dead-lettered"': 1,
      'type="other",outcome="ignored"': 1,
    });
    expect(countsOf(samples, "countersign_task_seconds_count")).toEqual({
      'queue="outcomes",outcome="done"': 1,
    });
    expect(countsOf(samples, "countersign_key_uses_total")).toEqual({ 'keyid="key-1",subject="tenant"': 1 });
    expect(countsOf(samples, "countersign_key_not_after_timestamp_seconds")).toEqual({
      'keyid="key-1"': 2_000_000_000,
    });
  });

  test("has labels of few values, whatever others publish", async () => {
    ends.push(prometheus({ registry, maxLabels: 10 }));
    for (let index = 0; index < 1_000; index += 1) {
      const steps = new Steps({});
      steps.begin(`guard-${index}`);
      steps.refused(new GuardError({ status: 400, code: `code-${index}`, message: "" }));
      channel("countersign:key-use").publish({ keyid: `key-${index}`, subject: `${index}`, notAfter: 1 });
    }
    const samples = await scrape();
    expect(Object.keys(countsOf(samples, "countersign_verdicts_total"))).toHaveLength(11);
    expect(Object.keys(countsOf(samples, "countersign_key_uses_total"))).toHaveLength(11);
    expect(Object.keys(countsOf(samples, "countersign_key_not_after_timestamp_seconds"))).toHaveLength(10);
    expect(countsOf(samples, "countersign_verdicts_total")).toMatchObject({
      'guard="other",outcome="reject",code="other"': 990,
    });
  });

  test("keeps codes of ours, however many others came first", async () => {
    ends.push(prometheus({ registry, maxLabels: 10 }));
    for (let index = 0; index < 20; index += 1) {
      const steps = new Steps({});
      steps.begin("exampleGuard");
      steps.refused(new GuardError({ status: 400, code: `code-${index}`, message: "" }));
    }
    await liveThrough();
    expect([...(await scrape()).keys()].join()).toContain('code="signature-mismatch"');
  });

  test("takes the registry of prom-client by default, and leaves it as it was", async () => {
    const end = prometheus();
    expect(register.getSingleMetric("countersign_verdicts_total")).toBeDefined();
    end();
    expect(await register.getMetricsAsJSON()).toEqual([]);
    prometheus()();
  });
});

describe("held keys", () => {
  test("are counted at each scrape", async () => {
    const { store } = await liveThrough();
    ends.push(prometheus({ registry, heldKeys: { payouts: store, empty: memoryIdempotencyStore() } }));
    expect(countsOf(await scrape(), "countersign_held_keys")).toEqual({
      'store="payouts"': 1,
      'store="empty"': 0,
    });
    const [entry] = store.list({ state: "held", limit: 1 }).entries;
    store.resolve("k2", "released", { fence: entry?.record.fence ?? 0 });
    expect(countsOf(await scrape(), "countersign_held_keys")).toMatchObject({ 'store="payouts"': 0 });
  });

  test("are counted over pages, up to ten", async () => {
    let asked = 0;
    const list = () => {
      asked += 1;
      return Promise.resolve({ entries: Array.from({ length: 1_000 }), cursor: `${asked}` });
    };
    ends.push(prometheus({ registry, heldKeys: { many: { list } } }));
    expect(countsOf(await scrape(), "countersign_held_keys")).toEqual({ 'store="many"': 10_000 });
    expect(asked).toBe(10);
  });

  test("have no value while the store does not answer", async () => {
    const emitWarning = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const list = () => Promise.reject(new Error("no connection"));
    ends.push(prometheus({ registry, heldKeys: { payouts: { list } } }));
    expect(countsOf(await scrape(), "countersign_held_keys")).toEqual({});
    expect(emitWarning).toHaveBeenCalledTimes(1);
    emitWarning.mockRestore();
  });

  test.each([[{ payouts: {} }], [null], ["payouts"]])("refuses %j for stores", (heldKeys) => {
    expect(() => prometheus({ registry, heldKeys: heldKeys as never })).toThrow(
      /^prometheus: option heldKeys/,
    );
  });
});

describe("tasks of work", () => {
  const summary = { queue: "outcomes", open: 2, dead: 1, oldestOpenMs: 1_500 };

  test("are counted at each scrape, with the age of the oldest", async () => {
    const queues = [summary, { queue: "letters", open: 0, dead: 0, oldestOpenMs: undefined }];
    ends.push(prometheus({ registry, work: { main: { summaries: () => Promise.resolve(queues) } } }));
    const samples = await scrape();
    expect(countsOf(samples, "countersign_tasks")).toEqual({
      'store="main",queue="outcomes",state="open"': 2,
      'store="main",queue="outcomes",state="dead"': 1,
      'store="main",queue="letters",state="open"': 0,
      'store="main",queue="letters",state="dead"': 0,
    });
    expect(countsOf(samples, "countersign_tasks_oldest_seconds")).toEqual({
      'store="main",queue="outcomes"': 1.5,
      'store="main",queue="letters"': 0,
    });
    queues.pop();
    expect(Object.keys(countsOf(await scrape(), "countersign_tasks"))).toHaveLength(2);
  });

  test("of a store that does not answer have no value, and the others have theirs", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const down = { summaries: () => Promise.reject(new Error("no connection")) };
    const up = { summaries: () => Promise.resolve([summary]) };
    ends.push(prometheus({ registry, work: { down, up } }));
    expect(Object.keys(countsOf(await scrape(), "countersign_tasks_oldest_seconds"))).toEqual([
      'store="up",queue="outcomes"',
    ]);
    expect(String(warn.mock.calls[0]?.[0])).toMatch(/could not count the tasks of down/);
    warn.mockRestore();
  });

  test("a store without a table of work is refused", () => {
    expect(() => prometheus({ registry, work: { main: {} as never } })).toThrow(
      /option work must be an object of tables of work/,
    );
  });
});
