import { expect, test } from "@jest/globals";
import { onTraceEnd, traces } from "@countersign/core";
import { Lanes, type Entrance } from "../../src/transactions/lanes.ts";

const longMs = 30_000;

/** Enters; `ended` says how, once it is known. */
function enter(lanes: Lanes, key = "k", waitMs = longMs, left?: AbortSignal) {
  const one: { how: Entrance | undefined; readonly entrance: Promise<Entrance> } = {
    how: undefined,
    entrance: lanes.enter(key, waitMs, left),
  };
  const note = async (): Promise<void> => {
    one.how = await one.entrance;
  };
  return { one, noted: note() };
}

async function leave({ one, noted }: ReturnType<typeof enter>): Promise<void> {
  await noted;
  if (typeof one.how !== "function") throw new Error(`did not enter: ${one.how}`);
  one.how();
}

/** Whether nobody is at the key, nor waits: an attempt that waits for nobody enters. */
async function isFree(lanes: Lanes, key = "k"): Promise<boolean> {
  const entrance = await lanes.enter(key, 0, undefined);
  if (typeof entrance === "function") entrance();
  return typeof entrance === "function";
}

test("lets one attempt at a key in at a time, in the order of arrival", async () => {
  const lanes = new Lanes(10, "tested");
  const all = [enter(lanes), enter(lanes), enter(lanes)];
  const other = enter(lanes, "other");
  await other.noted;
  for (const [index, attempt] of all.entries()) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await attempt.noted;
    expect(all.slice(index + 1).map(({ one }) => one.how)).toEqual(all.slice(index + 1).map(() => undefined));
    expect(await isFree(lanes)).toBe(false);
    // oxlint-disable-next-line no-await-in-loop -- as above
    await leave(attempt);
  }
  expect(await isFree(lanes)).toBe(true);
});

test.each<[string, (lanes: Lanes, client: AbortController) => Promise<Entrance>, Entrance]>([
  ["that waits for nobody", (lanes) => lanes.enter("k", 0, undefined), "timeout"],
  ["whose time is over", (lanes) => lanes.enter("k", 1, undefined), "timeout"],
  [
    "whose client has left",
    (lanes, client) => {
      client.abort();
      return lanes.enter("k", longMs, client.signal);
    },
    "client-left",
  ],
  [
    "whose client leaves",
    (lanes, client) => {
      const entrance = lanes.enter("k", longMs, client.signal);
      client.abort();
      return entrance;
    },
    "client-left",
  ],
])("turns an attempt away %s, and the next one gets its place", async (_case, wait, how) => {
  const lanes = new Lanes(1, "tested");
  const first = enter(lanes);
  await first.noted;
  const client = new AbortController();
  expect(await wait(lanes, client)).toBe(how);
  const next = enter(lanes);
  await leave(first);
  await leave(next);
  expect(await isFree(lanes)).toBe(true);
});

test("turns away who finds no room, of all keys together", async () => {
  const lanes = new Lanes(2, "tested");
  const inside = [enter(lanes, "a"), enter(lanes, "b")];
  const waiting = [enter(lanes, "a"), enter(lanes, "b")];
  expect(await lanes.enter("a", longMs, undefined)).toBe("timeout");
  for (const attempt of [...inside, ...waiting]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await leave(attempt);
  }
  const again = [enter(lanes, "a"), enter(lanes, "a"), enter(lanes, "a")];
  for (const attempt of again) {
    // oxlint-disable-next-line no-await-in-loop -- as above
    await leave(attempt);
  }
  expect(await Promise.all([isFree(lanes, "a"), isFree(lanes, "b")])).toEqual([true, true]);
});

test("tells a duplicate's wait, and how it ended, to subscribers of countersign:wait", async () => {
  const ends: string[] = [];
  const stop = onTraceEnd(traces.wait, ({ guard, key, outcome }) => {
    if (guard === "tested") ends.push(`${key} ${outcome}`);
  });
  const lanes = new Lanes(10, "tested");
  const first = enter(lanes);
  await first.noted;
  const client = new AbortController();
  const [late, leaving, next] = [
    enter(lanes, "k", 1),
    enter(lanes, "k", longMs, client.signal),
    enter(lanes),
  ];
  await late.noted;
  client.abort();
  await leaving.noted;
  await leave(first);
  await leave(next);
  stop();
  expect(ends).toEqual(["k timeout", "k client-left", "k claim"]);
});
