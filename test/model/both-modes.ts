// A random walk of both modes on one table, with operators, pruning and lines that are cut; invariants as in docs/architecture.md.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { GuardError, isGuardError } from "@countersign/core";
import type { IdempotencyRecord, IdempotencyStore, TransactionStores } from "@countersign/idempotency";
import {
  answerOf,
  type OpenTransaction,
  type Steps,
  TransactionOwner,
} from "@countersign/idempotency/internal";
import { expect } from "@jest/globals";

const durationMs = 8_000;
// On a busy machine less happens.
const longestMs = 240_000;
/** Of a test that walks. */
export const timeoutMs = longestMs + 60_000;
const leaseMs = 60;
const fingerprint = "f";

/** Two processes on one table, each with its own connections. */
export interface Ground<Tx> {
  readonly stores: readonly [TransactionStores<Tx>, TransactionStores<Tx>];
  insert(tx: Tx, key: string): unknown;
  /** Pays by a connection of its own, outside of any transaction, as a bank that knows nothing of keys. */
  payOutside(by: 0 | 1, key: string): Promise<unknown>;
  paid(key: string): Promise<number>;
  /** Ends a connection, or what a process that dies leaves. */
  cut(): Promise<unknown>;
}

const refusal = new GuardError({ status: 400, code: "refused", message: "refused" });

const below = (count: number): number => Math.floor(Math.random() * count);
const chance = (percent: number): boolean => below(100) < percent;

/** Ends when all that is usual has happened, or the run would say nothing. Returns what of it has not. */
export async function keepsItsWord<Tx>(
  ground: Ground<Tx>,
  usual: readonly string[],
): Promise<readonly string[]> {
  const beganAt = performance.now();
  const missing = (): readonly string[] => usual.filter((each) => !seen.has(each));
  const keys: string[] = [];
  const nonces: string[] = [];
  const finals = new Map<string, number>();
  const decided: { readonly key: string; readonly fence: number }[] = [];
  const seen = new Set<string>();
  /**
   * Attempts whose handler acts outside, and keys on which an operator decides. Neither begins while the other is at it. An attempt that has
   * lost its key ends beside the one that has it.
   */
  const [working, deciding] = [new Set<{ readonly key: string }>(), new Set<string>()];
  const broken = new Set<string>();
  const times = {
    waitMs: 100,
    storeTimeoutMs: 2_000,
    idleTimeoutMs: 300,
    transactionTimeoutMs: 60_000,
    maxWaiters: 100,
    retryAfterSeconds: 1,
  };
  const owners = ground.stores.flatMap((stores) =>
    (["rerun", "hold"] as const).map((recovery) => new TransactionOwner(stores, { ...times, recovery })),
  );

  const someKey = (): string => {
    if (keys.length === 0 || chance(15)) keys.push(`key ${randomUUID()}`);
    return keys[Math.max(0, keys.length - 1 - below(6))] ?? "";
  };
  const someKeys = (): readonly string[] => [...new Set([someKey(), someKey(), someKey()])];
  const newOwner = (key: string) => ({ key, token: randomUUID(), fingerprint });
  /** Pays, waits where transactions can, refuses. */
  function* pay(tx: Tx, key: string, refuses = chance(30)): Steps<void> {
    yield* answerOf(ground.insert(tx, key));
    if (!owners[0]!.isSynchronous && chance(20)) yield* answerOf(sleep(below(60)));
    if (refuses) throw refusal;
  }
  const note = async (what: string, key: string): Promise<void> => {
    seen.add(what);
    const says = what.startsWith("paid") || what === "done";
    if (says && (await ground.paid(key)) !== 1) broken.add(`I2: ${key} is said to be ${what}`);
  };

  const inTransaction = async (): Promise<void> => {
    const key = someKey();
    const isCopy = nonces.length > 0 && chance(25);
    const nonce = isCopy ? (nonces.at(-1 - below(Math.min(4, nonces.length))) ?? "") : randomUUID();
    if (!isCopy) nonces.push(nonce);
    const own = newOwner(key);
    const claim = { scope: "s", nonce, token: randomUUID(), retainMs: 60_000 };
    const owner = owners[below(4)]!;
    const run = async (): Promise<string> => {
      const performed = await owner.perform(
        { keys: [own], nonce: claim },
        function* steps(open: OpenTransaction<Tx>): Steps<string> {
          const [state] = open.begun.keys;
          if (state?.status !== "begun") return state?.status ?? "none";
          yield* owner.handle(open, open.keys, {}, () => pay(open.tx, key));
          return "paid";
        },
      );
      return performed.status === "ended" ? performed.result : performed.status;
    };
    const ended = await run().catch((error: unknown) => {
      if (isGuardError(error) && error.status === 400) return "refused";
      throw error;
    });
    if (ended === "paid" || ended === "refused" || ended === "done") {
      finals.set(nonce, (finals.get(nonce) ?? 0) + 1);
    }
    await note(ended, key);
  };

  /** Several keys, one handler after the other, as webhooks have it; a refusal ends them all, and some are given back unseen. */
  const together = async (): Promise<void> => {
    const attempts = someKeys().map(newOwner);
    const handled = 1 + below(attempts.length);
    const owner = owners[below(4)]!;
    const run = owner.perform({ keys: attempts }, function* steps(open: OpenTransaction<Tx>): Steps<
      readonly (readonly [string, string])[]
    > {
      const { tx, begun } = open;
      const answered = attempts.map(({ key }, index) => [begun.keys[index]?.status ?? "none", key] as const);
      const unhandled = open.keys.filter((_, index) => begun.keys[index]?.status === "begun");
      const ends: (readonly [string, string])[] = answered.filter(([status]) => status !== "begun");
      for (const [index, own] of unhandled.slice(0, handled).entries()) {
        const more = index < unhandled.length - 1;
        yield* owner.handle(open, [own], { more }, () => pay(tx, own.key, chance(10)));
        ends.push(["paid among others", own.key]);
      }
      const unseen = unhandled.slice(handled);
      if (unseen.length > 0) yield* owner.giveBack(tx, unseen);
      return [...ends, ...unseen.map(({ key }) => ["given back", key] as const)];
    });
    const performed = await run.catch((error: unknown) => {
      if (isGuardError(error) && error.status === 400) return "refused among others";
      throw error;
    });
    if (typeof performed === "string") return note(performed, attempts[0]!.key);
    if (!("result" in performed)) return note(performed.status, attempts[0]!.key);
    for (const [what, key] of performed.result) await note(what, key);
  };

  const claimBy = async (by: number, key: string) => {
    const token = randomUUID();
    const recovery = chance(50) ? "rerun" : "hold";
    const { status } = await ground.stores[by]!.idempotency.claim(key, {
      token,
      fingerprint,
      leaseMs,
      recovery,
    });
    return { token, status };
  };

  const underLease = async (): Promise<void> => {
    const key = someKey();
    const by = below(2) === 0 ? 0 : 1;
    const { idempotency } = ground.stores[by];
    const { token, status } = await claimBy(by, key);
    if (status !== "acquired") return note(status, key);
    const isLate = chance(40);
    await sleep(isLate ? leaseMs + below(2 * leaseMs) : below(20));
    const heartbeat = async (): Promise<void> =>
      note(`heartbeat: ${await idempotency.heartbeat(key, token, leaseMs)}`, key);
    if (isLate && chance(30)) {
      // On a busy machine hardly anybody else comes between the end of a lease and a heartbeat that is too late.
      await claimBy(below(2), key);
      return heartbeat();
    }
    if (chance(20)) return note(`release: ${await idempotency.release(key, token)}`, key);
    if (chance(20)) return note("left", key);
    if (chance(20)) return heartbeat();
    if (deciding.has(key)) return note("left", key);
    const attempt = { key };
    working.add(attempt);
    try {
      // From here on nobody takes the key, whatever becomes of its lease.
      const held = await idempotency.hold(key, token, "asks the bank");
      if (held === "lost") return await note("hold: lost", key);
      await ground.payOutside(by, key);
      const completed = await idempotency.complete(key, token);
      if (completed === "lost") broken.add(`I6: ${key} was lost while its handler acted`);
    } finally {
      working.delete(attempt);
    }
    return note("paid under a lease", key);
  };

  const settle = async (key: string): Promise<void> => {
    const { idempotency } = ground.stores[below(2)]!;
    // An operator waits for the end of a handler that acts outside.
    if ([...working].some((attempt) => attempt.key === key)) return;
    deciding.add(key);
    try {
      const record: IdempotencyRecord | undefined = await idempotency.read(key);
      if (record?.state !== "held" && record?.state !== "running") return;
      const { fence } = record;
      const outcome = (await ground.paid(key)) > 0 ? "done" : "released";
      if ((await idempotency.resolve(key, outcome, { fence })) !== "ok") return;
      seen.add(`resolved ${outcome}`);
      decided.push({ key, fence });
    } finally {
      deciding.delete(key);
    }
  };

  const operate = async (): Promise<void> => {
    const before = decided.length;
    if (before === 0 || chance(60)) await settle(someKey());
    // At once, before others take the key; or a decision of before, which they have overtaken.
    const last = decided.length > before && chance(50) ? decided.at(-1) : decided[below(decided.length)];
    if (last === undefined || chance(30)) return;
    const { idempotency } = ground.stores[below(2)]!;
    await note(`reopen: ${await idempotency.reopen(last.key, { fence: last.fence })}`, last.key);
  };
  const prune = async (): Promise<unknown> => ground.stores[below(2)]!.idempotency.prune();
  /** Walks through the keys, while they come and go. */
  const lookThrough = async (): Promise<void> => {
    for (const state of states) {
      for (const [key, record] of await listed(ground.stores[below(2)]!, state, 1 + below(5))) {
        seen.add(`listed ${state}`);
        if (record.state !== state) broken.add(`list: ${key} is ${record.state}, listed as ${state}`);
        if (state === "done" && (await ground.paid(key)) !== 1) broken.add(`I2: ${key} is listed as done`);
      }
    }
  };
  const steps: readonly (readonly [upTo: number, step: () => Promise<unknown>])[] = [
    [42, inTransaction],
    [56, together],
    [94, underLease],
    [96, lookThrough],
    [98, prune],
    [100, ground.cut],
  ];

  const repeat = async (step: () => Promise<unknown>): Promise<void> => {
    for (;;) {
      const pastMs = performance.now() - beganAt;
      if (pastMs > longestMs || (pastMs > durationMs && missing().length === 0)) return;
      // What is cut off, or finds a lock, fails; what it left is judged below.
      await step().catch((error: unknown) => seen.add(`failed: ${String(Object(error).code)}`));
    }
  };
  const someStep = (): Promise<unknown> => {
    const dice = below(100);
    return (steps.find(([upTo]) => dice < upTo)?.[1] ?? prune)();
  };
  const anOperator = (): Promise<void> => repeat(async () => (await sleep(20), operate()));
  await Promise.all([anOperator(), ...Array.from({ length: 9 }, () => repeat(someStep))]);

  await sleep(4 * leaseMs);
  const kept = new Map<string, string>();
  for (const key of keys) {
    for (let tries = 0; tries < 3; tries += 1) await settle(key);
    const paid = await ground.paid(key);
    const record = await ground.stores[0].idempotency.read(key);
    if (record !== undefined) kept.set(key, record.state);
    if (paid > 1) broken.add(`I1: ${key} was paid ${paid} times`);
    if ((record?.state === "done") !== (paid === 1))
      broken.add(`I17: ${key} is ${record?.state}, ${paid} paid`);
  }
  for (const state of states) {
    const found = [...(await listed(ground.stores[1], state, 7)).keys()];
    const expected = [...kept].filter(([, its]) => its === state).map(([key]) => key);
    expect(new Set(found)).toEqual(new Set(expected));
  }
  for (const [nonce, count] of finals) if (count > 1) broken.add(`I18: ${nonce} had ${count} answers`);
  expect([...broken]).toEqual([]);
  return missing();
}

const states = ["running", "held", "done"] as const;

async function listed(
  { idempotency }: { readonly idempotency: IdempotencyStore },
  state: (typeof states)[number],
  limit: number,
): Promise<ReadonlyMap<string, IdempotencyRecord>> {
  const found = new Map<string, IdempotencyRecord>();
  let cursor: string | undefined;
  do {
    const page = await idempotency.list?.({ state, limit, cursor });
    if (page === undefined) throw new Error("the store has no list()");
    for (const { key, record } of page.entries) found.set(key, record);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}
