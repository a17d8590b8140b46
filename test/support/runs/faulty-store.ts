import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll } from "@jest/globals";
import { noticeChannelName, type GuardNotice } from "@countersign/core";
import {
  memoryIdempotencyStore,
  type IdempotencyStore,
  type MemoryIdempotencyStore,
} from "@countersign/idempotency";
import { sleep } from "./eventually.ts";

const collectors = new Set<() => void>();

// The channel is that of the process: whoever is left would hear, and silence, the notices of the next test file.
afterAll(() => {
  for (const stop of collectors) stop();
});

export function collectNotices(key?: string): {
  readonly codes: () => string[];
  readonly messages: () => string[];
  readonly stop: () => void;
} {
  const notices: GuardNotice[] = [];
  // The channel is the process's: a store of an earlier test file may still publish.
  const guards = new Set(["idempotencyGuard", "receiveFiles"]);
  const onNotice = (message: unknown): void => {
    const notice = message as GuardNotice;
    if (guards.has(notice.guard)) notices.push(notice);
  };
  subscribe(noticeChannelName, onNotice);
  const stop = (): void => void unsubscribe(noticeChannelName, onNotice);
  collectors.add(stop);
  const about = (): readonly GuardNotice[] =>
    notices.filter((notice) => key === undefined || notice.message.includes(`"${key}"`));
  return {
    codes: () => about().map(({ code }) => code),
    messages: () => about().map(({ message }) => message),
    stop,
  };
}

type Method = "claim" | "read" | "heartbeat" | "complete" | "release" | "hold";

/** How one call of a store goes wrong. `after`: the effect has happened all the same. */
export type Fault = "throws before" | "throws after" | "hangs before" | "hangs after" | number | "as usual";

export interface FaultyStore extends IdempotencyStore {
  /** The next calls of a method go wrong in this order; further ones as usual. A number delays, then answers. */
  fail(method: Method, ...faults: Fault[]): void;
  failAll(fault: Fault): void;
  readonly calls: Record<Method, number>;
  readonly inner: MemoryIdempotencyStore;
}

/** An asynchronous store on the memory store, with faults on demand. `synchronous` passes answers straight through. */
export function faultyStore({ synchronous = false } = {}): FaultyStore {
  const inner = memoryIdempotencyStore();
  const queues: Record<Method, Fault[]> = {
    claim: [],
    read: [],
    heartbeat: [],
    complete: [],
    release: [],
    hold: [],
  };
  const calls: Record<Method, number> = { claim: 0, read: 0, heartbeat: 0, complete: 0, release: 0, hold: 0 };
  let always: Fault = "as usual";

  const faulty = <T>(method: Method, effect: () => T): T | Promise<T> => {
    calls[method] += 1;
    const fault = queues[method].shift() ?? always;
    if (!synchronous) return asynchronous(fault, effect);
    if (fault === "throws before") throw new Error("engine down");
    const value = effect();
    if (fault === "throws after") throw new Error("reply lost");
    return value;
  };
  return {
    isPrivate: true,
    inner,
    calls,
    fail: (method, ...faults) => void queues[method].push(...faults),
    failAll: (fault) => {
      always = fault;
    },
    claim: (key, claim) => faulty("claim", () => inner.claim(key, claim)),
    read: (key) => faulty("read", () => inner.read(key)),
    heartbeat: (key, token, leaseMs) => faulty("heartbeat", () => inner.heartbeat(key, token, leaseMs)),
    complete: (key, token) => faulty("complete", () => inner.complete(key, token)),
    release: (key, token) => faulty("release", () => inner.release(key, token)),
    hold: (key, token, reason) => faulty("hold", () => inner.hold(key, token, reason)),
    resolve: (key, outcome, decision) => inner.resolve(key, outcome, decision),
    reopen: (key, decision) => inner.reopen(key, decision),
    readReleased: (key) => inner.readReleased(key),
    prune: () => inner.prune(),
    close: () => inner.close(),
  };
}

async function asynchronous<T>(fault: Fault, effect: () => T): Promise<T> {
  if (typeof fault === "number") await sleep(fault, undefined, { ref: false });
  else await Promise.resolve();
  if (fault === "throws before") throw new Error("engine down");
  if (fault === "hangs before") return new Promise(() => {});
  const value = effect();
  if (fault === "throws after") throw new Error("reply lost");
  if (fault === "hangs after") return new Promise(() => {});
  return value;
}
