import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { cachedKeys, importVerificationKey } from "@countersign/http-signature-verify";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";

const never = new Promise<never>(() => {});

afterEach(() => {
  jest.useRealTimers();
});

describe("cachedKeys", () => {
  test("asks once for a key, vets it, and shares concurrent look-ups", async () => {
    const asked: string[] = [];
    const store = cachedKeys(async (keyid) => {
      asked.push(keyid);
      await nextTurn();
      return servicePublicPem;
    });
    const [one, two] = await Promise.all([store.get("a"), store.get("a")]);
    expect(one?.keyid).toBe("a");
    expect(two).toBe(one);
    expect(await store.get("a")).toBe(one);
    expect(asked).toEqual(["a"]);
  });

  test("remembers unknown keyids apart, so that a flood of them evicts no key", async () => {
    const asked: string[] = [];
    const store = cachedKeys(
      (keyid) => {
        asked.push(keyid);
        return keyid === "good" ? importVerificationKey("good", servicePublicPem) : undefined;
      },
      { max: 2 },
    );
    await store.get("good");
    for (const keyid of ["x1", "x2", "x3", "x4"]) {
      expect(await store.get(keyid)).toBeUndefined();
    }
    await store.get("x4");
    await store.get("good");
    expect(asked).toEqual(["good", "x1", "x2", "x3", "x4"]);
  });

  test("takes a KeyStore, and caches what it gives", async () => {
    const key = importVerificationKey("a", servicePublicPem);
    const asked: string[] = [];
    class Store {
      readonly #key = key;
      get(keyid: string) {
        asked.push(keyid);
        return keyid === "a" ? this.#key : undefined;
      }
    }
    const store = cachedKeys(new Store());
    expect([await store.get("a"), await store.get("a"), await store.get("b")]).toEqual([key, key, undefined]);
    expect(asked).toEqual(["a", "b"]);
  });

  test("does not cache an error", async () => {
    let calls = 0;
    const store = cachedKeys(() => {
      calls += 1;
      if (calls === 1) throw new Error("down");
      return servicePublicPem;
    });
    await expect(store.get("a")).rejects.toThrow("down");
    await expect(store.get("a")).resolves.toMatchObject({ keyid: "a" });
  });

  test("asks again when the time to live is over", async () => {
    let calls = 0;
    const store = cachedKeys(() => (calls++, undefined), { negativeTtlSeconds: 1 });
    await store.get("a");
    await sleep(1100);
    await store.get("a");
    expect(calls).toBe(2);
  });

  test.each([null, undefined])("takes %s for an unknown keyid, and remembers it as such", async (nothing) => {
    let calls = 0;
    const store = cachedKeys(() => (calls++, nothing));
    expect(await store.get("a")).toBeUndefined();
    expect(await store.get("a")).toBeUndefined();
    expect(calls).toBe(1);
  });

  test("forgets a look-up that is late, and asks anew at the next request", async () => {
    let calls = 0;
    const store = cachedKeys(() => (calls++ === 0 ? never : servicePublicPem), { lookupTimeoutMs: 20 });
    const waiting = [store.get("a"), store.get("a")];
    for (const get of waiting) await expect(get).rejects.toThrow("no answer within 20 ms");
    expect(calls).toBe(1);
    await expect(store.get("a")).resolves.toMatchObject({ keyid: "a" });
    expect(calls).toBe(2);
  });

  test.each<[string, string | null]>([
    ["the key that was withdrawn since", servicePublicPem],
    ["null", null],
  ])("drops the answer of a forgotten look-up: %s", async (_title, lateAnswer) => {
    jest.useFakeTimers();
    const answers: ((answer: string | null) => void)[] = [];
    const store = cachedKeys(() => new Promise<string | null>((resolve) => answers.push(resolve)), {
      lookupTimeoutMs: 20,
    });
    const forgotten = expect(store.get("a")).rejects.toThrow("no answer");
    await jest.advanceTimersByTimeAsync(20);
    await forgotten;
    const newer = store.get("a");
    // The newer look-up is still the one that later requests share.
    answers[0]?.(lateAnswer);
    await nextTurn();
    expect(store.get("a")).toBe(newer);
    const newest = lateAnswer === null ? servicePublicPem : null;
    answers[1]?.(newest);
    const expected = newest === null ? undefined : expect.objectContaining({ keyid: "a" });
    expect(await newer).toEqual(expected);
    answers[0]?.(lateAnswer);
    await nextTurn();
    expect(await store.get("a")).toEqual(expected);
    expect(answers).toHaveLength(2);
  });

  test("drops a late answer also while nobody asks", async () => {
    const answers: ((answer: string) => void)[] = [];
    const store = cachedKeys(() => new Promise<string>((resolve) => answers.push(resolve)), {
      lookupTimeoutMs: 20,
    });
    await expect(store.get("a")).rejects.toThrow("no answer");
    answers[0]?.(servicePublicPem);
    await nextTurn();
    void store.get("a");
    expect(answers).toHaveLength(2);
    answers[1]?.(servicePublicPem);
  });

  test("bounds the look-ups under way, whatever keyids strangers make up", async () => {
    let calls = 0;
    const store = cachedKeys(() => (calls++, never), { maxLookups: 10, max: 10, lookupTimeoutMs: 50 });
    const gets = Array.from({ length: 50_000 }, (_, index) => store.get(`made-up-${index}`));
    expect(calls).toBe(10);
    const settled = await Promise.allSettled(gets.map(async (get) => get));
    const reasons = settled.map((one) => (one.status === "rejected" ? String(one.reason) : "resolved"));
    expect(reasons.filter((reason) => reason.includes("10 look-ups are under way"))).toHaveLength(49_990);
    expect(reasons.filter((reason) => reason.includes("no answer within"))).toHaveLength(10);
    // The time-outs have made room.
    await expect(store.get("made-up-0")).rejects.toThrow("no answer within");
    expect(calls).toBe(11);
  });

  test("reads a key that is in use again although strangers fill the table", async () => {
    const store = cachedKeys((keyid) => (keyid === "good" ? servicePublicPem : never), {
      ttlSeconds: 1,
      maxLookups: 2,
      lookupTimeoutMs: 100,
    });
    await store.get("good");
    await sleep(1100);
    const flood = ["x1", "x2", "x3"].map((keyid) => store.get(keyid));
    await expect(flood[2]).rejects.toThrow("2 look-ups are under way");
    await expect(store.get("good")).resolves.toMatchObject({ keyid: "good" });
    await Promise.allSettled(flood.map(async (get) => get));
  });

  test("reads a forgotten key again although strangers fill the table", async () => {
    const store = cachedKeys((keyid) => (keyid === "good" ? servicePublicPem : never), {
      maxLookups: 2,
      lookupTimeoutMs: 100,
    });
    await store.get("good");
    const flood = ["x1", "x2"].map((keyid) => store.get(keyid));
    store.forget();
    flood.push(...["x1", "x2", "x3"].map((keyid) => store.get(keyid)));
    await expect(flood.at(-1)).rejects.toThrow("2 look-ups are under way");
    await expect(store.get("good")).resolves.toMatchObject({ keyid: "good" });
    await Promise.allSettled(flood.map(async (get) => get));
  });

  test("refuses a withdrawn key once its time is over, and keeps no place for it", async () => {
    let answer: string | undefined = servicePublicPem;
    const store = cachedKeys((keyid) => (keyid === "a" ? answer : never), {
      ttlSeconds: 1,
      negativeTtlSeconds: 1,
      maxLookups: 1,
      lookupTimeoutMs: 100,
    });
    await store.get("a");
    answer = undefined;
    await sleep(1100);
    expect(await store.get("a")).toBeUndefined();
    await sleep(1100);
    const flood = store.get("x");
    await expect(store.get("a")).rejects.toThrow("1 look-ups are under way");
    await Promise.allSettled([flood]);
  });

  test("rejects a key that does not pass vetting", async () => {
    const store = cachedKeys(() => Buffer.alloc(32).toString("base64"));
    await expect(store.get("a")).rejects.toThrow(/keyid "a"/);
  });

  test.each([
    ["store", undefined, {}],
    ["ttlSeconds", () => undefined, { ttlSeconds: 0 }],
    ["negativeTtlSeconds", () => undefined, { negativeTtlSeconds: "1" }],
    ["max", () => undefined, { max: -1 }],
    ["lookupTimeoutMs", () => undefined, { lookupTimeoutMs: 0 }],
    ["maxLookups", () => undefined, { maxLookups: Infinity }],
    ["unknown option ttl", () => undefined, { ttl: 1 }],
  ])("throws on a bad %s", (name, lookup, options) => {
    expect(() => cachedKeys(lookup as never, options as never)).toThrow(new RegExp(`^cachedKeys: .*${name}`));
  });
});
