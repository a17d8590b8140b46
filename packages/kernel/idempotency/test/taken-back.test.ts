import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import {
  idempotencyKeys,
  memoryIdempotencyStore,
  type IdempotencyStore,
  type OwnedKey,
} from "@countersign/idempotency";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { collectNotices } from "@countersign/test-support/runs/faulty-store.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const leaseMs = 1000;

/** An attempt that stood still until its lease had ended, and what an operator then decided about it. */
async function stoodStill(
  outcome: "done" | "released",
  {
    change = (same: IdempotencyStore) => same,
    ...options
  }: Partial<Parameters<typeof idempotencyKeys>[0]> & {
    readonly change?: (store: IdempotencyStore) => IdempotencyStore;
  } = {},
) {
  const store = memoryIdempotencyStore();
  const key = randomUUID();
  // It renews nothing meanwhile.
  const standing: IdempotencyStore = { ...methodsOf(store), heartbeat: () => "ok" };
  const keys = idempotencyKeys({
    factory: "receiveFiles",
    store: change(standing),
    leaseMs,
    storeTimeoutMs: 300,
    recovery: "hold",
    ...options,
  });
  const owned = await keys.acquire({ key, fingerprint: "f", token: randomUUID() });
  if (owned.status !== "acquired") throw new Error(owned.status);
  await sleep(leaseMs + 50);
  expect(store.resolve(key, outcome, { fence: owned.fence, by: "anna" })).toBe("ok");
  return { store, key, owned };
}

function methodsOf(store: IdempotencyStore): IdempotencyStore {
  return {
    claim: (...args) => store.claim(...args),
    read: (key) => store.read(key),
    heartbeat: (...args) => store.heartbeat(...args),
    complete: (...args) => store.complete(...args),
    release: (...args) => store.release(...args),
    hold: (...args) => store.hold(...args),
    resolve: (...args) => store.resolve(...args),
    reopen: (...args) => store.reopen(...args),
    readReleased: (key) => store.readReleased(key),
    prune: () => store.prune(),
    close: () => store.close(),
  };
}

const claim = (key: string) =>
  [key, { token: "retry", fingerprint: "f", leaseMs, recovery: "hold" }] as const;

describe("an attempt that may have paid, whose key an operator has released (I25)", () => {
  test.each<[string, (owned: OwnedKey) => Promise<unknown>, string, string]>([
    [
      "ends with success",
      (owned) => owned.complete(),
      "completion-lost",
      "ended with success: it is held again",
    ],
    [
      "holds",
      (owned) => owned.hold("no answer"),
      "hold-lost",
      "could not be held (no answer): it is held again",
    ],
  ])("holds it again before its answer when it %s", async (_what, end, code, message) => {
    const { store, key, owned } = await stoodStill("released");
    const notices = collectNotices(key);
    await end(owned);
    expect(store.claim(...claim(key))).toMatchObject({ status: "held", reason: "lease-expired" });
    expect(store.read(key)?.decision).toMatchObject({
      by: "anna",
      reopened: { by: "countersign", note: "taken back: the attempt went on, and may have paid" },
    });
    expect(notices.codes()).toEqual([code]);
    expect(notices.messages()).toEqual([expect.stringContaining(message)]);
    notices.stop();
  });

  test("leaves it to the retry that has it already", async () => {
    expectWarning(/^\[completion-lost\] .* it belongs to another attempt$/);
    const { store, key, owned } = await stoodStill("released");
    expect(store.claim(...claim(key))).toMatchObject({ status: "acquired" });
    expect(await owned.complete()).toMatchObject({ status: 503 });
    expect(store.read(key)).toMatchObject({ state: "running", token: "retry" });
  });

  test("leaves done as it is, a key that it gives back itself, and all under rerun", async () => {
    expectWarning(/^\[completion-lost\] .* it belongs to another attempt$/, 2);
    const done = await stoodStill("done");
    expect(await done.owned.complete()).toMatchObject({ status: 503 });
    expect(done.store.read(done.key)?.state).toBe("done");
    const given = await stoodStill("released");
    await given.owned.release();
    expect(given.store.read(given.key)).toBeUndefined();
    const repeatable = await stoodStill("released", { recovery: "rerun" });
    expect(await repeatable.owned.complete()).toMatchObject({ status: 503 });
    expect(repeatable.store.read(repeatable.key)).toBeUndefined();
  });

  test("holds it again as soon as a store that was down answers", async () => {
    expectWarning(/^\[completion-lost\] .* it belongs to another attempt$/);
    let isDown = true;
    const { store, key, owned } = await stoodStill("released", {
      change: (plain) => ({
        ...plain,
        readReleased(name) {
          if (isDown) throw new Error("down");
          return plain.readReleased(name);
        },
      }),
    });
    expect(await owned.complete()).toMatchObject({ status: 503 });
    expect(store.read(key)).toBeUndefined();
    isDown = false;
    await eventually(() => store.read(key)?.state === "held");
  });
});
