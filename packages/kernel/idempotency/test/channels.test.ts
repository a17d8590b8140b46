import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channels, onTraceEnd, traces, type PublishedEvents } from "@countersign/core";
import {
  idempotencyKeys,
  memoryIdempotencyStore,
  type IdempotencyStore,
  type MemoryIdempotencyStore,
  type OwnedKey,
} from "@countersign/idempotency";
import { WaitingRoom } from "@countersign/idempotency/internal";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { collectNotices, faultyStore } from "@countersign/test-support/runs/faulty-store.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

type IdempotencyKeysOptions = Parameters<typeof idempotencyKeys>[0];

const ends: (() => unknown)[] = [];
let engineHere: string;
let log: string[];
let settled: PublishedEvents["settled"][];

beforeEach(() => {
  // A test that ends leaves steps under way: each has engines of its own.
  engineHere = `engine ${randomUUID()}`;
  log = [];
  settled = [];
  const hear = (name: string, onEvent: (event: object) => void): void => {
    const listener = (event: unknown): void => onEvent(Object(event));
    subscribe(name, listener);
    ends.push(() => unsubscribe(name, listener));
  };
  ends.push(
    onTraceEnd(traces.claim, ({ guard, outcome }) => log.push(`claim by ${guard} ${outcome}`)),
    onTraceEnd(traces.store, ({ engine, step, outcome }) => {
      if (engine.startsWith(engineHere)) log.push(`${step} ${outcome}`);
    }),
    onTraceEnd(traces.wait, ({ key, outcome }) => log.push(`wait for ${key} ${outcome}`)),
  );
  hear("countersign:settled", (event) => {
    settled.push(event as PublishedEvents["settled"]);
    log.push(`settled ${Object(event).outcome}`);
  });
  hear("countersign:lease-lost", (event) => log.push(`lost ${Object(event).code}`));
});

// A file before this one may have left a subscriber in the process.
const subscribed = (): boolean[] =>
  [traces.claim, traces.store, traces.wait, channels.settled, channels.leaseLost].map(
    ({ hasSubscribers }) => hasSubscribers,
  );
const subscribedBefore = subscribed();

afterEach(() => {
  while (ends.length > 0) ends.pop()?.();
  expect(subscribed()).toEqual(subscribedBefore);
});

/** A store whose steps this test alone takes. */
function storeOf(): MemoryIdempotencyStore {
  return Object.assign(memoryIdempotencyStore(), { engine: engineHere });
}

const attempt = (key = "k1") => ({ key, fingerprint: "f", token: randomUUID() });

function keysOf(store: IdempotencyStore, options: Partial<IdempotencyKeysOptions> = {}) {
  return idempotencyKeys({ factory: "receiveFiles", store, ...options });
}

async function owned(keys: ReturnType<typeof keysOf>, key?: string): Promise<OwnedKey> {
  const acquired = await keys.acquire(attempt(key));
  if (acquired.status !== "acquired") throw new Error(acquired.status);
  return acquired;
}

describe("the life of a key", () => {
  test("done: claim, complete, settled, and a duplicate's claim", async () => {
    const keys = keysOf(storeOf());
    await (await owned(keys)).complete();
    await keys.acquire(attempt());
    expect(log).toEqual([
      "claim ok",
      "claim by receiveFiles acquired",
      "complete ok",
      "settled done",
      "claim ok",
      "claim by receiveFiles done",
    ]);
    expect(settled).toMatchObject([{ guard: "receiveFiles", key: "k1", ownedMs: expect.any(Number) }]);
  });

  test("released and held", async () => {
    const keys = keysOf(storeOf());
    await (await owned(keys)).release();
    await (await owned(keys)).hold("the bank did not answer");
    await keys.acquire(attempt());
    expect(log.filter((line) => /^(claim by|settled)/.test(line))).toEqual([
      "claim by receiveFiles acquired",
      "settled released",
      "claim by receiveFiles acquired",
      "settled held",
      "claim by receiveFiles held",
    ]);
  });

  test("lost to another attempt: the lease, and the end that comes too late", async () => {
    const { stop } = collectNotices();
    ends.push(stop);
    const store = storeOf();
    const keys = keysOf(store, { leaseMs: 1_000, storeTimeoutMs: 900 });
    const key = await owned(keys);
    expect(store.resolve("k1", "released", { fence: key.fence })).toBe("not-held");
    store.release("k1", "nobody's");
    // What an operator's tool may do to a row.
    store.heartbeat = () => "lost";
    store.complete = () => "lost";
    await eventually(() => key.lost);
    await key.complete();
    expect(log).toEqual([
      "claim ok",
      "claim by receiveFiles acquired",
      "heartbeat ok",
      "lost lease-lost",
      "complete ok",
      "settled not-owned",
      "readReleased ok",
    ]);
  });

  test("a store that fails and one that hangs", async () => {
    const broken = faultyStore();
    const store: IdempotencyStore = {
      ...broken,
      engine: `${engineHere}, which fails`,
      claim: () => Promise.reject(new Error("no connection")),
      release: () => "lost",
    };
    await expect(keysOf(store).acquire(attempt())).rejects.toMatchObject({
      code: "idempotency-store-unavailable",
    });
    expect(log.slice(0, 2)).toEqual(["claim error", "release ok"]);
    expect(log).toContain("claim by receiveFiles error");
    log = [];
    const hanging: IdempotencyStore = {
      ...store,
      engine: `${engineHere}, which hangs`,
      claim: () => new Promise(() => undefined),
    };
    await expect(keysOf(hanging, { storeTimeoutMs: 5 }).acquire(attempt())).rejects.toThrow();
    expect(log).toContain("claim timeout");
  });

  test("holds a key's text within a log's bounds", async () => {
    const keys = keysOf(storeOf());
    await (await owned(keys, `\u001b[31m${"x".repeat(400)}`)).complete();
    const [{ key } = { key: "" }] = settled;
    expect(key).toMatch(/^\\u001b\[31mx{251}\.\.\.$/);
  });
});

test("a wait is one trace, with what ended it", async () => {
  const store = storeOf();
  const keys = keysOf(store);
  const key = await owned(keys);
  const room = new WaitingRoom("receiveFiles", 2);
  const looks = { pollMs: 1_000, read: async () => store.read("k1") };
  const connected = <T>(work: (left: AbortSignal) => Promise<T>) => work(new AbortController().signal);
  const turn = await room.enter("k1", 10_000, connected);
  const waiting = room.untilDecided("k1", { ...looks, waitMs: 10_000 }, connected);
  await key.complete();
  room.wake("k1");
  expect(await waiting).toMatchObject({ status: "done" });
  await new Promise(setImmediate);
  expect(log).toContain("wait for k1 done");
  if (typeof turn === "object" && "leave" in turn) turn.leave();
  const busy = await room.enter("k2", 10_000, connected);
  expect(busy).toMatchObject({ leave: expect.any(Function) });
  expect(await room.enter("k2", 1, connected)).toBe("timeout");
  await new Promise(setImmediate);
  expect(log).toContain("wait for k2 timeout");
});
