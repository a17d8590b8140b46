import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { jwksKeys, type LiveKeyStore } from "@countersign/http-signature-verify";
import { answer, hearNotices, serviceJwk, setOf } from "./live-keys-bench.ts";
import type { JwksKeysOptions } from "../dist/jwks-keys.js";

const url = "https://keys.example/jwks.json";
const seconds = (count: number): Promise<void> => jest.advanceTimersByTimeAsync(count * 1000);

let store: LiveKeyStore;
let fetches: number;
let reply: () => Response | Promise<Response>;
let notices: ReturnType<typeof hearNotices>;

const open = (options: JwksKeysOptions = {}): LiveKeyStore => {
  const fetch = async (): Promise<Response> => {
    fetches += 1;
    return reply();
  };
  store = jwksKeys(url, { fetch, ...options });
  return store;
};
const codes = (): string[] => notices.heard.map(({ code }) => code);
const down = (): never => {
  throw new Error("the server is down");
};

beforeEach(async () => {
  jest.useFakeTimers();
  await seconds(1);
  fetches = 0;
  reply = () => answer(setOf("a"));
  notices = hearNotices();
});
afterEach(() => {
  store.close();
  notices.stop();
  jest.useRealTimers();
});

describe("jwksKeys", () => {
  test("fetches at the first look-up, once for all that wait", async () => {
    open();
    expect(fetches).toBe(0);
    const found = await Promise.all([store.get("a"), store.get("a"), store.get("b"), store.ready()]);
    expect(found.map((key) => key?.keyid)).toEqual(["a", "a", undefined, undefined]);
    expect(fetches).toBe(1);
    expect(store.keys().map(({ keyid }) => keyid)).toEqual(["a"]);
  });

  test("answers from a fresh set without a turn of the event loop", async () => {
    await open().ready();
    expect(store.get("a")).toMatchObject({ keyid: "a" });
  });

  test("fetches again before the time of the set is over, also when nobody asks", async () => {
    await open({ ttlSeconds: 100 }).ready();
    await seconds(79);
    expect(fetches).toBe(1);
    reply = () => answer(setOf("b"));
    await seconds(2);
    expect(fetches).toBe(2);
    expect(store.keys().map(({ keyid }) => keyid)).toEqual(["b"]);
    expect(notices.heard.at(-1)).toMatchObject({
      guard: "jwksKeys",
      code: "keys-changed",
      message: 'keys that came: "b"; keys that went: "a"',
    });
  });

  test.each<[string, Record<string, string>, number]>([
    ["no Cache-Control", {}, 300],
    ["max-age", { "cache-control": "public, max-age=1000" }, 1000],
    ["max-age in quotation marks", { "cache-control": 'max-age="1000"' }, 1000],
    ["max-age less Age", { "cache-control": "max-age=1000", age: "400" }, 600],
    ["an Age that is no number", { "cache-control": "max-age=1000", age: "old" }, 1000],
    ["a max-age below the least", { "cache-control": "max-age=1" }, 30],
    ["a max-age beyond the most", { "cache-control": "max-age=4000000000" }, 3600],
    ["no-store", { "cache-control": "no-store, max-age=1000" }, 30],
    ["a max-age that is no number", { "cache-control": "max-age=-5" }, 300],
  ])("uses a set with %s for its time", async (_title, headers, ttl) => {
    reply = () => answer(setOf("a"), headers);
    await open().ready();
    await seconds(0.8 * ttl - 1);
    expect(fetches).toBe(1);
    await seconds(2);
    expect(fetches).toBe(2);
  });

  test("is bound by minTtlSeconds and maxTtlSeconds for what servers say alone", async () => {
    await open({ ttlSeconds: 5, minTtlSeconds: 30, cooldownSeconds: 1 }).ready();
    await seconds(4.5);
    expect(fetches).toBe(2);
  });

  test("finds a key that was published a moment ago", async () => {
    await open().ready();
    await seconds(31);
    reply = () => answer(setOf("a", "b"));
    expect(await store.get("b")).toMatchObject({ keyid: "b" });
  });

  test("asks once in each cool-down, whatever 10,000 strangers make up", async () => {
    await open({ ttlSeconds: 3600, cooldownSeconds: 30 }).ready();
    const flood = async (name: string): Promise<void> => {
      const keyids = Array.from({ length: 10_000 }, (_, index) => `${name}-${index}`);
      const found = await Promise.all(keyids.map(async (keyid) => store.get(keyid)));
      expect(new Set(found)).toEqual(new Set([undefined]));
    };
    await flood("early");
    expect(fetches).toBe(1);
    await seconds(30);
    await flood("later");
    await flood("again");
    expect(fetches).toBe(2);
    expect(store.get("a")).toMatchObject({ keyid: "a" });
  });

  test("finds a key after one cool-down, although a stranger asked for its keyid before it was published", async () => {
    let nowMs = 0;
    await open({ ttlSeconds: 3600, cooldownSeconds: 30, now: () => nowMs }).ready();
    nowMs = 30_000;
    expect(await store.get("key-2027")).toBeUndefined();
    reply = () => answer(setOf("a", "key-2027"));
    nowMs = 59_999;
    expect(store.get("key-2027")).toBeUndefined();
    nowMs = 60_000;
    expect(await store.get("key-2027")).toMatchObject({ keyid: "key-2027" });
    expect(fetches).toBe(3);
  });

  test("fetches once in each cool-down for strangers who repeat keyids and make up others", async () => {
    let nowMs = 0;
    await open({ ttlSeconds: 3600, cooldownSeconds: 30, now: () => nowMs }).ready();
    for (nowMs = 0; nowMs < 300_000; nowMs += 1000) {
      // oxlint-disable-next-line no-await-in-loop -- one second after the other
      const found = await Promise.all(
        ["key-2027", `made-up-${nowMs}`].map(async (keyid) => store.get(keyid)),
      );
      expect(found).toEqual([undefined, undefined]);
    }
    expect(fetches).toBe(10);
  });

  test("keeps the last good set while no other can be had, for a bounded time", async () => {
    await open({ ttlSeconds: 100, staleIfErrorSeconds: 50, cooldownSeconds: 10 }).ready();
    reply = down;
    await seconds(99);
    expect(await store.get("a")).toMatchObject({ keyid: "a" });
    await seconds(49);
    expect(await store.get("a")).toMatchObject({ keyid: "a" });
    await seconds(3);
    await expect(store.get("a")).rejects.toThrow("the server is down");
    reply = () => answer(setOf("a"));
    await seconds(10);
    expect(await store.get("a")).toMatchObject({ keyid: "a" });
    expect(new Set(codes())).toEqual(new Set(["keys-changed", "keys-not-refreshed"]));
  });

  test("does not let a known key wait for a server that hangs", async () => {
    await open({ ttlSeconds: 100, cooldownSeconds: 10, timeoutMs: 5000 }).ready();
    reply = () => new Promise(() => {});
    await seconds(86);
    expect(codes()).toContain("keys-not-refreshed");
    await seconds(10 + 5 + 10 + 2);
    let key: unknown;
    void Promise.resolve(store.get("a")).then((found) => (key = found));
    await jest.advanceTimersByTimeAsync(0);
    expect(key).toMatchObject({ keyid: "a" });
  });

  test("cannot tell of an unknown keyid while the last fetch has failed", async () => {
    await open({ ttlSeconds: 3600 }).ready();
    reply = down;
    await seconds(31);
    await expect(store.get("b")).rejects.toThrow("the server is down");
    await expect(store.get("c")).rejects.toThrow("the server is down");
    expect(store.get("a")).toMatchObject({ keyid: "a" });
    expect(fetches).toBe(2);
  });

  test("ready rejects, and the store begins when the server does", async () => {
    reply = down;
    open({ cooldownSeconds: 10 });
    await expect(store.ready()).rejects.toThrow("the server is down");
    await expect(store.get("a")).rejects.toThrow("the server is down");
    expect(fetches).toBe(1);
    expect(notices.heard).toMatchObject([{ code: "keys-not-refreshed", message: "there is no set of keys" }]);
    reply = () => answer(setOf("a"));
    await seconds(11);
    expect(store.get("a")).toMatchObject({ keyid: "a" });
  });

  test("refresh waits for no cool-down", async () => {
    await open().ready();
    reply = () => answer(setOf("b"));
    await store.refresh();
    expect([store.get("a"), store.get("b")]).toMatchObject([undefined, { keyid: "b" }]);
  });

  test("refresh reads once more after a fetch that was under way, which may still have a withdrawn key", async () => {
    await open().ready();
    let release = (): void => {};
    reply = () => new Promise((resolve) => (release = () => resolve(answer(setOf("a")))));
    const [early, late] = [store.refresh(), store.refresh()];
    reply = () => answer(setOf("b"));
    const latest = store.refresh();
    release();
    await early;
    expect(store.get("a")).toMatchObject({ keyid: "a" });
    await Promise.all([late, latest]);
    expect([store.get("a"), store.get("b"), fetches]).toMatchObject([undefined, { keyid: "b" }, 3]);
  });

  test("names a key that was forgotten among those that went", async () => {
    reply = () => answer(setOf("a", "b"));
    await open().ready();
    reply = () => answer(setOf("b"));
    store.forget("a");
    await store.get("a");
    expect(notices.heard.at(-1)?.message).toBe('keys that came: none; keys that went: "a"');
  });

  test("forgets nothing once it is closed", async () => {
    await open().ready();
    store.close();
    store.forget();
    await seconds(1000);
    expect(fetches).toBe(1);
  });

  test("an empty set withdraws all keys", async () => {
    await open().ready();
    reply = () => answer({ keys: [] });
    await store.refresh();
    expect(store.get("a")).toBeUndefined();
  });

  test("leaves bad keys out, and tells of each once", async () => {
    const bad = { ...serviceJwk, kid: "b\u0000\u001B[2J", use: "enc" };
    reply = () => answer({ keys: [...setOf("a", "c", "c").keys, bad, null] });
    await open({ validity: (keyid) => ({ subject: `tenant ${keyid}` }) }).ready();
    await store.refresh();
    expect(store.keys()).toEqual([expect.objectContaining({ keyid: "a", subject: "tenant a" })]);
    const left = notices.heard.filter(({ code }) => code === "key-left-out").map(({ message }) => message);
    expect(left).toEqual([
      String.raw`the key "b\u0000\u001b[2J" is left out`,
      "the key without a keyid is left out",
      'the key "c" is left out',
    ]);
  });

  test("uses a key whose kid a key for encryption has too", async () => {
    const { keys } = setOf("a");
    for (const list of [
      [{ ...serviceJwk, kid: "a", use: "enc" }, ...keys],
      [...keys, { kty: "AKP", kid: "a" }],
    ]) {
      reply = () => answer({ keys: list });
      open();
      // oxlint-disable-next-line no-await-in-loop -- one store after the other
      expect(await store.get("a")).toMatchObject({ keyid: "a" });
      store.close();
    }
  });

  test("a set of which no key can be used is a bad one", async () => {
    await open().ready();
    reply = () => answer({ keys: [{ kty: "RSA", kid: "a" }] });
    await expect(store.refresh()).rejects.toThrow("no key of the set can be used");
    expect(store.get("a")).toMatchObject({ keyid: "a" });
  });

  test("close ends the timer, and what is under way", async () => {
    await open({ ttlSeconds: 100 }).ready();
    reply = () => new Promise(() => {});
    const late = store.refresh();
    store.close();
    store.close();
    await Promise.all([expect(late).rejects.toThrow(), seconds(1000)]);
    expect(fetches).toBe(2);
    await expect(store.get("a")).rejects.toThrow("closed");
    await expect(store.refresh()).rejects.toThrow("closed");
    expect(codes()).not.toContain("keys-not-refreshed");
  });
});
