import type { SqliteNonceStore } from "../dist/nonce-store.js";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { connect, createStores, databases, drivers, temporaryFile, testClock } from "./connections.ts";

const use = { scope: "key-1", nonce: "0b7d1b5e-6d5c-4a2c-9d7e-6a7c1f1f9b11", token: "a", retainMs: 120_000 };

describe.each(databases)("nonce store, %s", (_name, open) => {
  let clock: ReturnType<typeof testClock>;
  let store: SqliteNonceStore;

  beforeEach(() => {
    clock = testClock();
    store = createStores(open(), { now: clock.now }).nonces;
  });

  test("says fresh once, and again to the same token", () => {
    expect(store.claim(use)).toBe("fresh");
    expect(store.claim({ ...use, token: "b" })).toBe("seen");
    expect(store.claim(use)).toBe("fresh");
    expect(store.claim({ ...use, token: "b" })).toBe("seen");
  });

  test.each([
    ["another scope", { scope: "key-2" }],
    ["another nonce", { nonce: "other" }],
    ["the nonce in upper case", { nonce: use.nonce.toUpperCase() }],
    ["a scope and a nonce cut elsewhere", { scope: "key-10", nonce: use.nonce.slice(1) }],
  ])("keeps %s apart", (_case, other) => {
    store.claim(use);
    expect(store.claim({ ...use, ...other, token: "b" })).toBe("fresh");
  });

  test.each([
    ["one millisecond before the retention ends", 119_999, "seen"],
    ["at the very end of the retention", 120_000, "seen"],
    ["one millisecond after it", 120_001, "fresh"],
  ])("remembers %s", (_when, ms, answer) => {
    store.claim(use);
    clock.advance(ms);
    store.prune();
    expect(store.claim({ ...use, token: "b" })).toBe(answer);
  });

  test("never shortens the retention when the same claim is repeated", () => {
    store.claim(use);
    store.claim({ ...use, retainMs: 1 });
    clock.advance(100_000);
    expect(store.claim({ ...use, token: "b" })).toBe("seen");
  });

  test("removes what has expired and nothing else", () => {
    for (let index = 0; index < 501; index++) store.claim({ ...use, nonce: `short-${index}`, retainMs: 10 });
    store.claim(use);
    clock.advance(11);
    expect(store.prune()).toBe(501);
    expect(store.prune()).toBe(0);
    expect(store.claim({ ...use, token: "b" })).toBe("seen");
  });

  test.each([
    ["an empty nonce", { nonce: "" }],
    ["an object as scope", { scope: {} as string }],
    ["an empty token", { token: "" }],
    ["no retention", { retainMs: 0 }],
    ["half a millisecond", { retainMs: 0.5 }],
  ])("refuses %s", (_case, other) => {
    expect(() => store.claim({ ...use, ...other })).toThrow(TypeError);
  });

  test("throws after close", () => {
    store.close();
    expect(() => store.claim(use)).toThrow(/closed/);
    expect(() => store.prune()).toThrow(/closed/);
  });
});

describe.each(drivers)("nonce store by the engine's clock, %s", (_name, open) => {
  test("remembers over connections and a restart, for its retention", async () => {
    const file = temporaryFile();
    const first = open(file);
    expect(createStores(first).nonces.claim(use)).toBe("fresh");
    expect(createStores(first).nonces.claim({ ...use, nonce: "short", retainMs: 50 })).toBe("fresh");
    const second = createStores(connect(file, open)).nonces;
    expect(second.claim({ ...use, token: "b" })).toBe("seen");
    first.close();
    await new Promise((resolve) => {
      setTimeout(resolve, 60);
    });
    const third = createStores(connect(file, open)).nonces;
    expect(third.claim({ ...use, token: "b" })).toBe("seen");
    expect(third.claim({ ...use, nonce: "short", token: "b" })).toBe("fresh");
  });

  test("throws when it cannot write, and joins no transaction of the caller", () => {
    const file = temporaryFile();
    const database = connect(file, open);
    const store = createStores(database).nonces;
    database.exec("PRAGMA busy_timeout = 20");
    const writer = connect(file, open);
    writer.exec("BEGIN IMMEDIATE");
    expect(() => store.claim(use)).toThrow(/locked/);
    writer.exec("ROLLBACK");
    database.exec("BEGIN");
    expect(() => store.claim(use)).toThrow(/transaction is open/);
    database.exec("COMMIT");
    expect(store.claim(use)).toBe("fresh");
  });
});
