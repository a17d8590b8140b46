import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { cachedKeyStore, importVerificationKey } from "@countersign/http-signature-verify";
import { servicePublicPem } from "../../../test/support/test-keys.ts";

describe("cachedKeyStore", () => {
  test("asks once for a key, vets it, and shares concurrent look-ups", async () => {
    const asked: string[] = [];
    const store = cachedKeyStore(async (keyid) => {
      asked.push(keyid);
      await sleep(5);
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
    const store = cachedKeyStore(
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

  test("does not cache an error", async () => {
    let calls = 0;
    const store = cachedKeyStore(() => {
      calls += 1;
      if (calls === 1) throw new Error("down");
      return servicePublicPem;
    });
    await expect(store.get("a")).rejects.toThrow("down");
    await expect(store.get("a")).resolves.toMatchObject({ keyid: "a" });
  });

  test("asks again when the time to live is over", async () => {
    let calls = 0;
    const store = cachedKeyStore(() => (calls++, undefined), { negativeTtlSeconds: 1 });
    await store.get("a");
    await sleep(1100);
    await store.get("a");
    expect(calls).toBe(2);
  });

  test("rejects a key that does not pass vetting", async () => {
    const store = cachedKeyStore(() => Buffer.alloc(32).toString("base64"));
    await expect(store.get("a")).rejects.toThrow(/keyid "a"/);
  });

  test.each([
    ["lookup", undefined, {}],
    ["ttlSeconds", () => undefined, { ttlSeconds: 0 }],
    ["negativeTtlSeconds", () => undefined, { negativeTtlSeconds: "1" }],
    ["max", () => undefined, { max: -1 }],
    ["unknown option ttl", () => undefined, { ttl: 1 }],
  ])("throws on a bad %s", (name, lookup, options) => {
    expect(() => cachedKeyStore(lookup as never, options as never)).toThrow(
      new RegExp(`^cachedKeyStore: .*${name}`),
    );
  });
});
