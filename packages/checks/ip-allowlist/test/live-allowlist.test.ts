import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { noticeChannelName, type GuardNotice } from "@countersign/core";
import { guardErrors } from "@countersign/express";
import {
  admitAddress,
  compileAllowlist,
  ipAllowlist,
  liveAllowlist,
  type IpAllowlistOptions,
  type LiveAllowlist,
} from "@countersign/ip-allowlist";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import express from "express";
import { close, listen, send } from "@countersign/test-support/servers/http-client.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

type Options = Parameters<typeof liveAllowlist>[0];

const here = "127.0.0.1";
const elsewhere = "192.0.2.1";

let heard: GuardNotice[] = [];
const hear = (notice: unknown): void => void heard.push(notice as GuardNotice);
const codes = (): readonly string[] => heard.map(({ code }) => code);
const opened: LiveAllowlist[] = [];

beforeEach(() => {
  heard = [];
  subscribe(noticeChannelName, hear);
});

afterEach(() => {
  unsubscribe(noticeChannelName, hear);
  for (const list of opened.splice(0)) list.close();
});

/** A list of which the test moves the clock, and says what the source gives next. */
function bench(options: Partial<Options> = {}) {
  let nowMs = 1_000;
  let next: () => unknown = () => [here];
  let loads = 0;
  const list = liveAllowlist({
    load: () => {
      loads += 1;
      return next() as readonly string[];
    },
    refreshSeconds: 60,
    cooldownSeconds: 10,
    maxAgeSeconds: 600,
    now: () => nowMs,
    ...options,
  });
  opened.push(list);
  return {
    list,
    loads: () => loads,
    pass: (seconds: number) => void (nowMs += 1000 * seconds),
    gives: (value: () => unknown) => void (next = value),
    async settled() {
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    },
  };
}

const down = (): never => {
  throw new Error("the source is down");
};

describe("liveAllowlist", () => {
  test("admits by what it has read", async () => {
    const { list } = bench();
    await list.ready();
    expect(list.isAllowed(here)).toBe(true);
    expect(list.isAllowed("::ffff:127.0.0.1")).toBe(true);
    expect(list.isAllowed(elsewhere)).toBe(false);
    expect(list.isAllowed(undefined)).toBe(false);
    expect(list.entries()).toEqual([here]);
  });

  test("refuses to be ready without a first list, and says why", async () => {
    const { list, gives, pass } = bench();
    gives(down);
    await expect(list.ready()).rejects.toThrow("liveAllowlist: the source is down");
    expect(() => list.isAllowed(here)).toThrow("the source is down");
    expect(list.entries()).toEqual([]);
    gives(() => [here]);
    pass(10);
    await list.ready();
    expect(list.isAllowed(here)).toBe(true);
  });

  test("admits nobody before it has read, and begins to", async () => {
    const { list, settled, loads } = bench();
    expect(() => list.isAllowed(here)).toThrow("there is no list of addresses yet: await ready()");
    expect(() => list.isAllowed(here)).toThrow();
    await settled();
    expect([list.isAllowed(here), loads()]).toEqual([true, 1]);
  });

  test("reads again when it is time, once for all who ask, and admits by the old list meanwhile", async () => {
    const { list, gives, pass, settled, loads } = bench();
    await list.ready();
    let release: (entries: readonly string[]) => void = () => {};
    gives(() => new Promise((resolve) => (release = resolve)));
    pass(59);
    expect([list.isAllowed(here), loads()]).toEqual([true, 1]);
    pass(1);
    for (let count = 0; count < 5; count += 1) expect(list.isAllowed(here)).toBe(true);
    expect(loads()).toBe(2);
    release([elsewhere]);
    await settled();
    expect([list.isAllowed(here), list.isAllowed(elsewhere)]).toEqual([false, true]);
    expect(heard.map(({ code, message }) => [code, message])).toEqual([
      ["allowlist-changed", `addresses that came: ${elsewhere}; addresses that went: ${here}`],
    ]);
  });

  test("refresh loads once more after a load under way, which may still have a withdrawn address", async () => {
    const { list, gives, loads } = bench();
    gives(() => [here, elsewhere]);
    await list.ready();
    let release = (): void => {};
    gives(() => new Promise((resolve) => (release = () => resolve([here, elsewhere]))));
    const early = list.refresh();
    gives(() => [here]);
    const later = list.refresh();
    release();
    await early;
    expect(list.entries()).toEqual([here, elsewhere]);
    await later;
    expect([list.entries(), loads()]).toEqual([[here], 3]);
  });

  test("tells the changes of a long list", async () => {
    const { list, gives } = bench();
    const long = Array.from(
      { length: 200_000 },
      (_, index) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
    );
    gives(() => long);
    await list.ready();
    // Compared entry by entry with the other list, this takes minutes, which jest ends.
    gives(() => [here, ...long.slice(1)]);
    await list.refresh();
    await new Promise((resolve) => setTimeout(resolve));
    expect(heard.map(({ message }) => message)).toEqual([
      `addresses that came: ${here}; addresses that went: 10.0.0.0`,
    ]);
  });

  test.each<[string, () => unknown]>([
    ["throws", down],
    ["rejects", () => Promise.reject(new Error("no"))],
    ["gives nothing", () => undefined],
    ["gives one text", () => here],
    ["gives a bad entry among good ones", () => [elsewhere, "10.0.0.1/8"]],
    ["gives an empty entry", () => [elsewhere, ""]],
    ["gives no text", () => [elsewhere, 1]],
    ["gives everybody", () => ["0.0.0.0/1", "128.0.0.0/1"]],
  ])("keeps the last good list when the source %s, told once, for a bounded time", async (_name, gives) => {
    const made = bench();
    const { list, pass, settled } = made;
    await list.ready();
    made.gives(gives);
    for (let count = 0; count < 5; count += 1) {
      pass(60);
      expect([list.isAllowed(here), list.isAllowed(elsewhere)]).toEqual([true, false]);
      await settled();
    }
    expect(codes()).toEqual(["allowlist-not-refreshed"]);
    expect(heard[0]?.message).toBe("the last good list of addresses stays in use");
    pass(299);
    expect(list.isAllowed(here)).toBe(true);
    pass(1);
    expect(() => list.isAllowed(here)).toThrow(/^liveAllowlist: /);
    await settled();
    made.gives(() => [elsewhere]);
    pass(10);
    await list.refresh();
    expect([list.isAllowed(here), list.isAllowed(elsewhere)]).toEqual([false, true]);
    // The next time that it fails is told again.
    made.gives(down);
    await expect(list.refresh()).rejects.toThrow("the source is down");
    expect(codes()).toEqual(["allowlist-not-refreshed", "allowlist-changed", "allowlist-not-refreshed"]);
  });

  test("asks a failing source again after the cool-down only", async () => {
    const { list, gives, pass, settled, loads } = bench();
    await list.ready();
    gives(down);
    pass(60);
    for (const expected of [2, 2, 2]) {
      list.isAllowed(here);
      await settled();
      expect(loads()).toBe(expected);
      pass(3);
    }
    pass(1);
    list.isAllowed(here);
    expect(loads()).toBe(3);
  });

  test("refuses everybody by an empty list, and tells it once", async () => {
    const { list, gives } = bench();
    gives(() => []);
    await list.ready();
    await list.refresh();
    expect([list.isAllowed(here), list.isAllowed(elsewhere)]).toEqual([false, false]);
    expect(codes()).toEqual(["allowlist-empty"]);
    gives(() => [here]);
    await list.refresh();
    gives(() => []);
    await list.refresh();
    expect(list.isAllowed(here)).toBe(false);
    expect(codes()).toEqual(["allowlist-empty", "allowlist-changed", "allowlist-empty", "allowlist-changed"]);
  });

  test("gives up on a source that does not answer, and on what it says later", async () => {
    let answer: (entries: readonly string[]) => void = () => {};
    const { list } = bench({
      load: () => new Promise((resolve) => (answer = resolve)),
      timeoutMs: 20,
    });
    await expect(list.ready()).rejects.toThrow("load did not answer within 20 ms");
    answer([here]);
    await Promise.resolve();
    expect(() => list.isAllowed(here)).toThrow();
  });

  test("reads by its own timer, without a request", async () => {
    const load = jest.fn<Options["load"]>();
    load.mockReturnValueOnce([here]).mockReturnValue([elsewhere]);
    const list = liveAllowlist({ load, refreshSeconds: 1 });
    opened.push(list);
    await list.ready();
    await eventually(() => list.entries()[0] !== here);
    expect(list.entries()).toEqual([elsewhere]);
  });

  test("admits nobody once it is closed, and reads no more", async () => {
    const { list, loads } = bench();
    await list.ready();
    list.close();
    expect(() => list.isAllowed(here)).toThrow("liveAllowlist: the list is closed");
    await expect(list.refresh()).rejects.toThrow("closed");
    expect(loads()).toBe(1);
  });

  test("is not moved by what becomes of the list that it was given", async () => {
    const entries = [here];
    const { list, gives } = bench();
    gives(() => entries);
    await list.ready();
    entries[0] = elsewhere;
    expect([list.isAllowed(here), list.entries()]).toEqual([true, [here]]);
  });

  test.each<[string, unknown, RegExp]>([
    ["no load", {}, /option load must be a function/],
    ["a list", { load: [here] }, /option load must be a function/],
    ["no time between readings", { load: () => [], refreshSeconds: 0 }, /option refreshSeconds must be/],
    ["an unknown option", { load: () => [], ttl: 1 }, /unknown option ttl/],
  ])("throws on %s", (_name, options, message) => {
    expect(() => liveAllowlist(options as Options)).toThrow(TypeError);
    expect(() => liveAllowlist(options as Options)).toThrow(message);
  });
});

async function statusBy(
  options: IpAllowlistOptions,
): Promise<readonly [status: number, retryAfter: unknown]> {
  const app = express();
  app.use(ipAllowlist(options), (_req, res) => void res.end());
  app.use(guardErrors());
  const { server, port } = await listen(app);
  try {
    const answer = await send(port, { method: "GET", path: "/", headers: [], body: Buffer.alloc(0) });
    return [answer.status, answer.headers["retry-after"]];
  } finally {
    await close(server);
  }
}

describe("ipAllowlist with a list that changes", () => {
  test("goes by a live list, and answers 503 while there is none", async () => {
    const { list, gives } = bench();
    gives(down);
    await expect(list.ready()).rejects.toThrow();
    expect(await statusBy({ allow: list, status: 404 })).toEqual([503, "30"]);
    gives(() => [here]);
    await list.refresh();
    expect(await statusBy({ allow: list })).toEqual([200, undefined]);
    gives(() => [elsewhere]);
    await list.refresh();
    expect(await statusBy({ allow: list, status: 404 })).toEqual([404, undefined]);
  });

  test("goes by a source of the app's own", async () => {
    expect(await statusBy({ allow: { isAllowed: compileAllowlist([here]) } })).toEqual([200, undefined]);
    expect(await statusBy({ allow: { isAllowed: compileAllowlist([elsewhere]) } })).toEqual([401, undefined]);
    expect(await statusBy({ allow: { isAllowed: down } })).toEqual([503, "30"]);
    expect(await statusBy({ allow: { isAllowed: () => "yes" as never } })).toEqual([503, "30"]);
    expect(() => ipAllowlist({ allow: (() => [here]) as never })).toThrow("option allow must be an array");
  });

  test("leaves dangerouslyAllowAnyAddress to the source", () => {
    const { list } = bench();
    expect(() => ipAllowlist({ allow: list, dangerouslyAllowAnyAddress: true })).toThrow(
      /option dangerouslyAllowAnyAddress belongs to the source/,
    );
  });

  test("admitAddress goes by a source too", async () => {
    const { list } = bench();
    expect(() => admitAddress(here, list)).toThrow(
      expect.objectContaining({ status: 503, code: "allowlist-unavailable" }),
    );
    await list.ready();
    expect(() => admitAddress(here, list)).not.toThrow();
    expect(() => admitAddress(elsewhere, list, 403)).toThrow(
      expect.objectContaining({ status: 403, code: "ip-not-allowed" }),
    );
    expect(() => admitAddress(here, { isAllowed: () => "yes" as never })).toThrow(
      expect.objectContaining({ status: 503 }),
    );
  });
});
