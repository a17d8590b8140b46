import { randomUUID } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { GuardError } from "@countersign/core";
import type { IdempotencyStore } from "@countersign/idempotency";
import {
  type AttemptEnd,
  LeaseOwner,
  type LeasedRun,
  type LeaseWork,
  type WorkEnd,
} from "@countersign/idempotency/internal";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";
import { faultyStore } from "@countersign/test-support/runs/faulty-store.ts";

const paid: WorkEnd = { kind: "responded", status: 200 };

type Options = ConstructorParameters<typeof LeaseOwner>[0];

function ownerOn(store: IdempotencyStore, options: Partial<Options> = {}): LeaseOwner {
  return new LeaseOwner({
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
}

/** Attempts at a key, each with a token of its own. */
function attemptsAt(owner: LeaseOwner, recovery: Options["recovery"] = "hold") {
  return (work: LeaseWork, { key = "k", before }: { key?: string; before?: () => void } = {}) => {
    const attempt = { key: { key, fingerprint: "f", token: randomUUID() }, before };
    return owner.perform(attempt, { recovery, isReserved: true }, work);
  };
}

function performerOn(store: IdempotencyStore, options: Partial<Options> = {}) {
  return attemptsAt(ownerOn(store, options), options.recovery);
}

function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

test("duplicates of an attempt in this process claim nothing, and are all told of its end", async () => {
  const store = faultyStore();
  const perform = performerOn(store);
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
  expect(first).toMatchObject({ status: "ended", result: { replacement: undefined } });
  expect(others).toEqual(others.map(() => ({ status: "done", fingerprint: "f" })));
  expect([runs, store.calls.claim]).toEqual([1, 1]);
});

test("the next attempt runs when the first has freed the key, and only then", async () => {
  const perform = performerOn(faultyStore());
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
  const perform = performerOn(store, { pollMs: 20 });
  const all = Array.from({ length: 20 }, () => perform(() => Promise.reject(new Error("runs twice"))));
  await eventually(() => store.calls.read > 1);
  store.inner.complete("k", "other");
  expect(await Promise.all(all)).toEqual(all.map(() => ({ status: "done", fingerprint: "f" })));
  expect(store.calls.claim).toBe(1);
});

test("what is thrown once the key is owned refuses the attempt, and frees the key of which nothing ran", async () => {
  const store = faultyStore();
  const perform = performerOn(store);
  const refusal = new GuardError({ status: 400, code: "business-unknown", message: "unknown" });
  const before = (): never => {
    throw refusal;
  };
  await expect(perform(async () => paid, { before })).rejects.toBe(refusal);
  expect(store.inner.read("k")).toBeUndefined();
});

test("work that rejects has failed: its key is held", async () => {
  const store = faultyStore();
  const { result } = Object(await performerOn(store)(() => Promise.reject(new TypeError("a mistake"))));
  expect(result).toMatchObject({ verdict: { key: "held" } });
  expect(store.inner.read("k")).toMatchObject({
    state: "held",
    reason: expect.stringMatching("TypeError"),
  });
});

test("an attempt that may have lost its lease gives its turn away while its work goes on", async () => {
  const store = faultyStore();
  const perform = performerOn(store, { recovery: "rerun", leaseMs: 1_000, storeTimeoutMs: 100 });
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
  expect(await perform(work)).toMatchObject({ status: "ended", result: { replacement: undefined } });
  expect(runs[0]?.lost).toBe(true);
  first.open();
  expect(await slow).toMatchObject({ status: "ended", result: { replacement: { status: 503 } } });
  expectWarning(/^\[lease-lost\]/);
  expectWarning(/^\[completion-lost\]/);
});

describe("a handler that ends after its response has ended", () => {
  const deserted = { kind: "deserted", status: undefined } as const;
  const stateAfter = async (
    end: (run: LeasedRun) => WorkEnd,
    recovery: "hold" | "rerun" = "rerun",
  ): Promise<string> => {
    const store = faultyStore();
    await performerOn(store, { recovery })(async (run) => end(run));
    // Its own end is told later, and nobody waits for it.
    await new Promise((resolve) => setTimeout(resolve, 30));
    return store.inner.read("k")?.state ?? "free";
  };
  const after = (ownEnd: AttemptEnd): WorkEnd => ({
    ...deserted,
    handler: { ownEnd: Promise.resolve(ownEnd) },
  });

  test.each<[string, AttemptEnd, "hold" | "rerun", string]>([
    ["responds with a success", { kind: "responded", status: 200 }, "rerun", "done"],
    ["responds with a success, under hold", { kind: "responded", status: 200 }, "hold", "done"],
    ["has its request answered by what follows", { kind: "handed-on", status: 200 }, "rerun", "done"],
    ["begins a success that fails", { kind: "response-failed", begun: 200, status: 500 }, "rerun", "held"],
    ["throws", { kind: "threw", error: new Error("away"), status: 500 }, "rerun", "free"],
    ["throws, under hold", { kind: "threw", error: new Error("away"), status: 500 }, "hold", "held"],
  ])("ends its key by the same table when it %s", async (_what, ownEnd, recovery, state) => {
    expect(await stateAfter(() => after(ownEnd), recovery)).toBe(state);
  });

  test("has its key held when it said hold() meanwhile", async () => {
    const state = await stateAfter((run) => {
      const ownEnd = async (): Promise<AttemptEnd> => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        run.hold("sent to the bank");
        return { kind: "responded", status: 502 };
      };
      return { ...deserted, handler: { ownEnd: ownEnd() } };
    });
    expect(state).toBe("held");
  });

  test("pays although its promise settles just before its response", async () => {
    const state = await stateAfter(() => {
      const working = Promise.resolve();
      const ownEnd = (async (): Promise<AttemptEnd> => {
        await working;
        await Promise.resolve();
        await Promise.resolve();
        return { kind: "responded", status: 200 };
      })();
      return { kind: "taken", status: 503, handler: { working, ownEnd } };
    });
    expect(state).toBe("done");
  });

  test("frees its key under rerun when it settles without a response", async () => {
    const never = new Promise<AttemptEnd>(() => {});
    const taken = { kind: "taken", status: 503 } as const;
    const handler = { working: Promise.resolve(), ownEnd: never };
    expect(await stateAfter(() => ({ ...taken, handler }))).toBe("free");
    expect(
      await stateAfter((run) => {
        run.hold("sent to the bank");
        return { ...taken, handler };
      }),
    ).toBe("held");
  });
});

test("whoever gets no turn in time asks the store, which may know more", async () => {
  const store = faultyStore();
  const perform = performerOn(store, { waitMs: 0 });
  await perform(async () => paid);
  const again = Array.from({ length: 5 }, () => perform(() => Promise.reject(new Error("runs twice"))));
  expect(await Promise.all(again)).toEqual(again.map(() => ({ status: "done", fingerprint: "f" })));
  const paying = gate();
  const running = perform(
    async () => {
      await paying.opened;
      return paid;
    },
    { key: "other" },
  );
  expect(await perform(async () => paid, { key: "other" })).toEqual({ status: "in-flight" });
  paying.open();
  expect(await running).toMatchObject({ status: "ended" });
});

test("a drain refuses attempts, and waits for those that have begun", async () => {
  const store = faultyStore();
  const owner = ownerOn(store);
  const perform = attemptsAt(owner);
  const paying = gate();
  const running = perform(async () => {
    await paying.opened;
    return paid;
  });
  const drained = owner.drain({ timeoutMs: 10_000 });
  const refused = perform(async () => paid, { key: "other" });
  await expect(refused).rejects.toMatchObject({ code: "draining" });
  paying.open();
  expect(await running).toMatchObject({ status: "ended" });
  expect(await drained).toEqual({ keys: 0, claims: 0 });
});
