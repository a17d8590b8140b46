import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { onTraceEnd, traces } from "@countersign/core";
import type { IdempotencyRecord } from "@countersign/idempotency";
import { isTurn, WaitingRoom } from "../src/waiting.ts";

const longMs = 30_000;
const neverLeft = new AbortController().signal;

type Entered = Awaited<ReturnType<WaitingRoom["enter"]>>;

/** Enters; `how` says how that ended, once it is known. */
function enter(room: WaitingRoom, key = "k", waitMs = longMs, left: AbortSignal = neverLeft) {
  const one: { how: Entered | undefined; readonly entered: Promise<Entered> } = {
    how: undefined,
    entered: Promise.resolve(room.enter(key, waitMs, (work) => work(left))),
  };
  const note = async (): Promise<void> => {
    one.how = await one.entered;
  };
  return { one, noted: note() };
}

async function leave(
  { one, noted }: ReturnType<typeof enter>,
  ...decided: Parameters<Extract<Entered, { leave: unknown }>["leave"]>
): Promise<void> {
  await noted;
  if (one.how === undefined || !isTurn(one.how)) throw new Error("got no turn");
  one.how.leave(...decided);
}

/** Whether nobody has the turn, nor waits: an attempt that waits for nobody gets it. */
async function isFree(room: WaitingRoom, key = "k"): Promise<boolean> {
  const entered = await room.enter(key, 0, (work) => work(neverLeft));
  if (isTurn(entered)) entered.leave();
  return isTurn(entered);
}

describe("the turn at a key", () => {
  test("goes to one attempt at a time, in the order of arrival", async () => {
    const room = new WaitingRoom("tested", 10);
    const all = [enter(room), enter(room), enter(room)];
    const other = enter(room, "other");
    await other.noted;
    for (const [index, attempt] of all.entries()) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await attempt.noted;
      expect(all.slice(index + 1).map(({ one }) => one.how)).toEqual(
        all.slice(index + 1).map(() => undefined),
      );
      expect(await isFree(room)).toBe(false);
      // oxlint-disable-next-line no-await-in-loop -- as above
      await leave(attempt);
    }
    expect(await isFree(room)).toBe(true);
  });

  test.each<[string, (room: WaitingRoom, client: AbortController) => Promise<Entered>, Entered]>([
    ["that waits for nobody", (room) => enter(room, "k", 0).one.entered, "timeout"],
    ["whose time is over", (room) => enter(room, "k", 1).one.entered, "timeout"],
    [
      "whose client has left",
      (room, client) => {
        client.abort();
        return enter(room, "k", longMs, client.signal).one.entered;
      },
      "client-left",
    ],
    [
      "whose client leaves",
      (room, client) => {
        const { entered } = enter(room, "k", longMs, client.signal).one;
        client.abort();
        return entered;
      },
      "client-left",
    ],
  ])("is refused to an attempt %s, and the next one gets its place", async (_case, wait, how) => {
    const room = new WaitingRoom("tested", 1);
    const first = enter(room);
    await first.noted;
    const client = new AbortController();
    expect(await wait(room, client)).toBe(how);
    const next = enter(room);
    await leave(first);
    await leave(next);
    expect(await isFree(room)).toBe(true);
    expect(getEventListeners(client.signal, "abort")).toEqual([]);
  });

  test("is refused to who finds no room, of all keys together", async () => {
    const room = new WaitingRoom("tested", 2);
    const inside = [enter(room, "a"), enter(room, "b")];
    const waiting = [enter(room, "a"), enter(room, "b")];
    expect(await enter(room, "a").one.entered).toBe("timeout");
    for (const attempt of [...inside, ...waiting]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await leave(attempt);
    }
    const again = [enter(room, "a"), enter(room, "a"), enter(room, "a")];
    for (const attempt of again) {
      // oxlint-disable-next-line no-await-in-loop -- as above
      await leave(attempt);
    }
    expect(await Promise.all([isFree(room, "a"), isFree(room, "b")])).toEqual([true, true]);
  });

  test("is left once, although it is left again", async () => {
    const room = new WaitingRoom("tested", 10);
    const [first, second, third] = [enter(room), enter(room), enter(room)];
    await leave(first);
    await leave(first);
    await second.noted;
    expect(third.one.how).toBeUndefined();
    await leave(second);
    await leave(third);
  });

  test("is left with what was decided about the key, which all are told that wait", async () => {
    const room = new WaitingRoom("tested", 10);
    const [first, second, third] = [enter(room), enter(room), enter(room)];
    const decided = { status: "done", fingerprint: "f" } as const;
    await leave(first, decided);
    expect(await Promise.all([second.one.entered, third.one.entered])).toEqual([decided, decided]);
    expect(await isFree(room)).toBe(true);
  });

  test("tells a duplicate's wait, and how it ended, to subscribers of countersign:wait", async () => {
    const ends: string[] = [];
    const stop = onTraceEnd(traces.wait, ({ guard, key, outcome }) => {
      if (guard === "tested") ends.push(`${key} ${outcome}`);
    });
    const room = new WaitingRoom("tested", 10);
    const first = enter(room);
    await first.noted;
    const client = new AbortController();
    const [late, leaving, next] = [enter(room, "k", 1), enter(room, "k", longMs, client.signal), enter(room)];
    await late.noted;
    client.abort();
    await leaving.noted;
    await leave(first);
    await leave(next);
    stop();
    expect(ends).toEqual(["k timeout", "k client-left", "k claim"]);
  });
});

describe("a look at a key of another process", () => {
  const run: IdempotencyRecord = {
    state: "running",
    token: "t",
    fence: 1,
    fingerprint: "f",
    remainingMs: 60_000,
  };
  const done: IdempotencyRecord = { state: "done", token: "t", fence: 1, fingerprint: "f" };
  const isDone = { status: "done", fingerprint: "f" };

  /** Answers of the store, each given when the test says so. */
  let reads: ((record: IdempotencyRecord | undefined) => void)[];
  let room: WaitingRoom;

  beforeEach(async () => {
    reads = [];
    room = new WaitingRoom("tested", 2);
    await enter(room).noted;
  });

  function look(client = new AbortController(), waitMs = 5_000) {
    const read = () => new Promise<IdempotencyRecord | undefined>((resolve) => reads.push(resolve));
    return room.untilDecided("k", { waitMs, pollMs: 10_000, read }, (work) => work(client.signal));
  }

  test("looks again when it was woken during a look, whose answer may be older", async () => {
    const outcome = look();
    room.wake("k");
    room.wake("k");
    room.wake("k");
    expect(reads).toHaveLength(1);
    reads[0]?.(run);
    await nextTurn();
    expect(reads).toHaveLength(2);
    reads[1]?.(done);
    expect(await outcome).toEqual(isDone);
  });

  test("takes null, which databases say for what they do not have, for a freed key", async () => {
    const outcome = look();
    room.wake("k");
    reads[0]?.(null as never);
    expect(await outcome).toBe("claim");
  });

  test("goes on after a store that has failed, and hears what an operator waits for", async () => {
    const read = readerOf([new Error("away"), { ...done, state: "held", reason: "why" }]);
    const outcome = room.untilDecided("k", { waitMs: 5_000, pollMs: 1, read }, (work) => work(neverLeft));
    expect(await outcome).toEqual({ status: "held", fingerprint: "f", reason: "why" });
  });

  test("ends with its client and by time, keeps no listener, and has its place again", async () => {
    const client = new AbortController();
    const leaving = look(client);
    client.abort();
    expect(await leaving).toBe("client-left");
    expect(await look(client)).toBe("client-left");
    expect(getEventListeners(client.signal, "abort")).toEqual([]);
    expect(await look(undefined, 20)).toBe("timeout");
    expect(await look(undefined, 0)).toBe("timeout");
    const [first, second] = [look(), look()];
    expect(await look()).toBe("timeout");
    room.wake("k");
    reads.at(-1)?.(done);
    expect(await second).toEqual(isDone);
    expect(await Promise.race([first, nextTurn("waits")])).toBe("waits");
  });
});

/** Reads what is listed, one after the other; an Error is thrown. */
function readerOf(listed: readonly (Error | IdempotencyRecord)[]) {
  let next = 0;
  return async (): Promise<IdempotencyRecord> => {
    const given = listed[next++];
    if (given === undefined || given instanceof Error) throw given ?? new Error("read too often");
    return given;
  };
}
