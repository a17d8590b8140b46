import { randomUUID } from "node:crypto";
import { expect, test } from "@jest/globals";
import { GuardError } from "@countersign/core";
import type { IdempotencyStore } from "@countersign/idempotency";
import { LeaseOwner, type LeasedRun, type LeaseWork, type WorkEnd } from "@countersign/idempotency/internal";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";
import { faultyStore } from "@countersign/test-support/runs/faulty-store.ts";

const paid: WorkEnd = { kind: "responded", status: 200 };

function ownerOn(
  store: IdempotencyStore,
  options: Partial<ConstructorParameters<typeof LeaseOwner>[0]> = {},
) {
  const owner = new LeaseOwner({
    factory: "tested",
    store,
    leaseMs: 30_000,
    storeTimeoutMs: 2_000,
    recovery: "hold",
    handlerTimeoutMs: Infinity,
    retryAfterSeconds: 5,
    waitMs: 10_000,
    pollMs: 5,
    maxWaiters: 100,
    ...options,
  });
  const rules = { recovery: options.recovery ?? "hold", isReserved: true };
  return (work: LeaseWork, { key = "k", before }: { key?: string; before?: () => void } = {}) =>
    owner.perform({ key: { key, fingerprint: "f", token: randomUUID() }, before }, rules, work);
}

function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

test("duplicates of an attempt in this process claim nothing, and are all told of its end", async () => {
  const store = faultyStore();
  const perform = ownerOn(store);
  const paying = gate();
  let runs = 0;
  const work: LeaseWork = async () => {
    runs += 1;
    await paying.opened;
    return paid;
  };
  const all = Array.from({ length: 20 }, () => perform(work));
  await eventually(() => runs === 1);
  paying.open();
  const [first, ...others] = await Promise.all(all);
  expect(first).toMatchObject({ status: "ended", ended: { replacement: undefined } });
  expect(others).toEqual(others.map(() => ({ status: "done", fingerprint: "f" })));
  expect([runs, store.calls.claim]).toEqual([1, 1]);
});

test("the next attempt runs when the first has freed the key, and only then", async () => {
  const perform = ownerOn(faultyStore());
  const log: string[] = [];
  const refusing: LeaseWork = async () => {
    log.push("begins");
    await new Promise((resolve) => setTimeout(resolve, 20));
    log.push("refuses");
    return { kind: "responded", status: 400 };
  };
  await Promise.all([perform(refusing), perform(refusing)]);
  expect(log).toEqual(["begins", "refuses", "begins", "refuses"]);
});

test("a key that another process has is looked at by one attempt for all, until it is done", async () => {
  const store = faultyStore();
  const claim = { token: "other", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
  store.inner.claim("k", claim);
  const perform = ownerOn(store, { pollMs: 20 });
  const all = Array.from({ length: 20 }, () => perform(() => Promise.reject(new Error("runs twice"))));
  await eventually(() => store.calls.read > 1);
  store.inner.complete("k", "other");
  expect(await Promise.all(all)).toEqual(all.map(() => ({ status: "done", fingerprint: "f" })));
  expect(store.calls.claim).toBe(1);
});

test("what is thrown once the key is owned refuses the attempt, and frees the key of which nothing ran", async () => {
  const store = faultyStore();
  const perform = ownerOn(store);
  const refusal = new GuardError({ status: 400, code: "business-unknown", message: "unknown" });
  const before = (): never => {
    throw refusal;
  };
  await expect(perform(async () => paid, { before })).rejects.toBe(refusal);
  expect(store.inner.read("k")).toBeUndefined();
});

test("work that rejects has failed: its key is held", async () => {
  const store = faultyStore();
  const { ended } = Object(await ownerOn(store)(() => Promise.reject(new TypeError("a mistake"))));
  expect(ended).toMatchObject({ verdict: { key: "held" } });
  expect(store.inner.read("k")).toMatchObject({
    state: "held",
    reason: expect.stringMatching("TypeError"),
  });
});

test("an attempt that may have lost its lease gives its turn away while its work goes on", async () => {
  const store = faultyStore();
  const perform = ownerOn(store, { recovery: "rerun", leaseMs: 1_000, storeTimeoutMs: 100 });
  const first = gate();
  const runs: LeasedRun[] = [];
  const work: LeaseWork = async (run) => {
    runs.push(run);
    if (runs.length === 1) await first.opened;
    return paid;
  };
  const slow = perform(work);
  await eventually(() => runs.length === 1);
  // As if the process had stood still, and an operator had decided.
  store.inner.release("k", runs[0]?.attempt.token ?? "");
  expect(await perform(work)).toMatchObject({ status: "ended", ended: { replacement: undefined } });
  expect(runs[0]?.lost).toBe(true);
  first.open();
  expect(await slow).toMatchObject({ status: "ended", ended: { replacement: { status: 503 } } });
  expectWarning(/^\[lease-lost\]/);
  expectWarning(/^\[completion-lost\]/);
});

test("a drain refuses attempts, and waits for those that have begun", async () => {
  const store = faultyStore();
  const owner = new LeaseOwner({
    factory: "tested",
    store,
    leaseMs: 30_000,
    storeTimeoutMs: 2_000,
    recovery: "hold",
    handlerTimeoutMs: Infinity,
    retryAfterSeconds: 5,
    waitMs: 10_000,
    pollMs: 5,
    maxWaiters: 100,
  });
  const rules = { recovery: "hold", isReserved: true } as const;
  const attempt = (key: string) => ({ key: { key, fingerprint: "f", token: randomUUID() } });
  const paying = gate();
  const running = owner.perform(attempt("a"), rules, async () => {
    await paying.opened;
    return paid;
  });
  const drained = owner.drain({ timeoutMs: 10_000 });
  await expect(owner.perform(attempt("b"), rules, async () => paid)).rejects.toMatchObject({
    code: "draining",
  });
  paying.open();
  expect(await running).toMatchObject({ status: "ended" });
  expect(await drained).toEqual({ keys: 0, claims: 0 });
});
