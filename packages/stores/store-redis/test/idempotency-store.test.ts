import type { IdempotencyStore } from "@countersign/idempotency";
import { expect, test } from "@jest/globals";
import { describeOnRedis } from "@countersign/test-support/servers/engines.ts";
import { pause, testClock } from "@countersign/test-support/runs/after-test.ts";
import { dayMs, newStores } from "./connections.ts";

const key = "payout-7.acc-1.acc-2";
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const use = { scope: "keyid-1", nonce: "n", token: "a", retainMs: 60_000 };
const shortLease = { ...claim, leaseMs: 20 };

const fenceOf = async (store: IdempotencyStore, token = "a") => {
  const result = await store.claim(key, { ...claim, token });
  return result.status === "acquired" ? result.fence : Number.NaN;
};

const decide = async (store: IdempotencyStore, outcome: "done" | "released") =>
  store.resolve(key, outcome, { fence: (await store.read(key))?.fence ?? 0 });

describeOnRedis("what Redis removes by itself", () => {
  const never = -1;

  /** Milliseconds until Redis removes the record. */
  async function timeToLive(step: (store: IdempotencyStore) => unknown): Promise<number> {
    const { idempotency, onKey } = await newStores({ retentionMs: 7 * dayMs });
    await idempotency.claim(key, shortLease);
    await step(idempotency);
    return Number(await onKey(key, "PTTL"));
  }

  test.each<[string, (store: IdempotencyStore) => unknown]>([
    ["a run", () => {}],
    ["a run whose lease is gone", () => pause(30)],
    ["a run that had a heartbeat", (store) => store.heartbeat(key, "a", 10)],
    [
      "a run that was released before",
      async (store) => [await store.release(key, "a"), await fenceOf(store)],
    ],
    ["a held key", (store) => store.hold(key, "a", "why")],
    [
      "a key that is held since its lease expired",
      async (store) => {
        await pause(30);
        await store.claim(key, { ...claim, token: "b", recovery: "hold" });
      },
    ],
    [
      "a key that an operator released, reopened",
      async (store) => {
        const fence = await fenceOf(store);
        await store.hold(key, "a", "why");
        await decide(store, "released");
        await store.reopen(key, { fence });
      },
    ],
  ])("is never %s", async (_case, step) => {
    expect(await timeToLive(step)).toBe(never);
  });

  test.each<[string, number, (store: IdempotencyStore) => unknown]>([
    ["a paid key after the retention", 7 * dayMs, (store) => store.complete(key, "a")],
    [
      "a key that was resolved as done after the retention",
      7 * dayMs,
      async (store) => [await store.hold(key, "a", "why"), await decide(store, "done")],
    ],
    ["a released key after a day", dayMs, (store) => store.release(key, "a")],
    [
      "a key that was resolved as released after the retention, with the decision",
      7 * dayMs,
      async (store) => [await store.hold(key, "a", "why"), await decide(store, "released")],
    ],
    [
      "a key that was released, behind a decision about it, after the retention",
      7 * dayMs,
      async (store) => {
        await store.hold(key, "a", "why");
        await decide(store, "released");
        await store.claim(key, claim);
        await store.release(key, claim.token);
      },
    ],
  ])("is %s", async (_case, expectedMs, step) => {
    const ttl = await timeToLive(step);
    expect(ttl).toBeLessThanOrEqual(expectedMs + 1_000);
    expect(ttl).toBeGreaterThan(expectedMs - 30_000);
  });

  test("is a done key whose retention had ended and that runs again no more", async () => {
    const clock = testClock();
    const { idempotency, onKey } = await newStores({ now: clock.now });
    await idempotency.claim(key, claim);
    await idempotency.complete(key, "a");
    clock.advance(90 * dayMs);
    expect(await idempotency.claim(key, { ...claim, token: "b" })).toMatchObject({ status: "acquired" });
    expect(await onKey(key, "PTTL")).toBe(never);
  });
});

describeOnRedis("the fence", () => {
  test("grows by the server's clock also over a record that is gone", async () => {
    const { idempotency, onKey } = await newStores();
    const first = await fenceOf(idempotency);
    await onKey(key, "UNLINK");
    const second = await fenceOf(idempotency);
    expect(second).toBeGreaterThan(first);
    expect(Number.isSafeInteger(second)).toBe(true);
    // Microseconds since 1970, give or take an hour.
    expect(Math.abs(second / 1_000 - Date.now())).toBeLessThan(3_600_000);
  });

  test("grows by one where the clock has not moved on, or went back", async () => {
    const clock = testClock();
    const { idempotency } = await newStores({ now: clock.now });
    const first = await fenceOf(idempotency);
    await idempotency.release(key, "a");
    expect(await fenceOf(idempotency, "b")).toBe(first + 1);
    await idempotency.release(key, "b");
    clock.advance(-dayMs);
    expect(await fenceOf(idempotency, "c")).toBe(first + 2);
    expect(first).toBe(clock.now() * 1_000 + dayMs * 1_000);
  });
});

describeOnRedis("durations beyond what Redis can add to its clock", () => {
  test("are cut to a century", async () => {
    const { idempotency, nonces, sendCommand, prefix } = await newStores();
    const leaseMs = Number.MAX_SAFE_INTEGER;
    await idempotency.claim(key, { ...claim, leaseMs });
    const century = 36_500 * dayMs;
    const record = await idempotency.read(key);
    const remainingMs = record?.state === "running" ? record.remainingMs : Number.NaN;
    expect(remainingMs).toBeGreaterThan(century - 60_000);
    expect(remainingMs).toBeLessThanOrEqual(century);
    expect(await idempotency.heartbeat(key, "a", leaseMs)).toBe("ok");
    const longUse = { scope: "s", nonce: "n", token: "a", retainMs: leaseMs };
    expect(await nonces.claim(longUse)).toBe("fresh");
    expect(await nonces.claim({ ...longUse, token: "b" })).toBe("seen");
    const name = `${prefix}:nonce:1:s:n`;
    const ttl = Number(await sendCommand(["PTTL", name], { key: name, isReadonly: false }));
    expect(ttl).toBeGreaterThan(century - 60_000);
    expect(ttl).toBeLessThanOrEqual(century + 1_000);
  });
});

describeOnRedis("a record that is damaged", () => {
  const steps: [string, (store: IdempotencyStore) => unknown][] = [
    ["claim", (store) => store.claim(key, { ...claim, token: "b" })],
    ["claim by the owner", (store) => store.claim(key, claim)],
    ["read", (store) => store.read(key)],
    ["heartbeat", (store) => store.heartbeat(key, "a", 1_000)],
    ["complete", (store) => store.complete(key, "a")],
    ["release", (store) => store.release(key, "a")],
    ["hold", (store) => store.hold(key, "a", "why")],
    ["resolve", (store) => store.resolve(key, "released", { fence: 1 })],
  ];

  test.each<[string, string, ...string[]]>([
    ["a run without its lease, which would look expired", "HDEL", "until"],
    ["a run without its state, which would look absent", "HDEL", "state"],
    ["a run without its token", "HDEL", "token"],
    ["a run without its fingerprint", "HDEL", "fingerprint"],
    ["a run without its fence", "HDEL", "fence"],
    ["a record of an unknown state", "HSET", "state", "paid"],
    ["a lease that is no number", "HSET", "until", "soon"],
    ["a fence that is no number", "HSET", "fence", "nan"],
  ])("%s: every step throws, and changes nothing", async (_case, command, ...args) => {
    const { idempotency, onKey } = await newStores();
    await idempotency.claim(key, claim);
    await onKey(key, command, ...args);
    const before = await onKey(key, "DUMP");
    for (const [name, step] of steps) {
      expect({ name, answer: await answerOf(() => step(idempotency)) }).toEqual({
        name,
        answer: expect.stringMatching(/record of a key is damaged/),
      });
    }
    expect(await onKey(key, "DUMP")).toEqual(before);
  });

  test("a value of another type: every step throws", async () => {
    const { idempotency, onKey } = await newStores();
    await onKey(key, "SET", "something else");
    for (const [name, step] of steps) {
      expect({ name, answer: await answerOf(() => step(idempotency)) }).toEqual({
        name,
        answer: expect.stringMatching(/WRONGTYPE/),
      });
    }
    expect(await onKey(key, "GET")).toBe("something else");
  });
});

describeOnRedis("resolve()", () => {
  test.each(["done", "released"] as const)("as %s is a look and a write", async (outcome) => {
    const { idempotency, sendCommand, prefix } = await newStores();
    const fence = await fenceOf(idempotency);
    await idempotency.hold(key, "a", "why");
    const sent: string[] = [];
    const { idempotency: operator } = await newStores({
      prefix,
      sendCommand: (command, route) => {
        sent.push(command[0] ?? "");
        return sendCommand(command, route);
      },
    });
    // The scripts are on the server: others have run them.
    await idempotency.claim(key, { ...claim, token: "b" });
    sent.length = 0;
    expect(await operator.resolve(key, outcome, { fence: fence + 1 })).toBe("not-held");
    expect(await operator.resolve(key, outcome, { fence })).toBe("ok");
    expect(sent.filter((name) => name !== "INFO")).toEqual(["EVALSHA", "EVALSHA", "EVALSHA"]);
  });

  test.each(["done", "released"] as const)(
    "as %s, sent again by the client whose reply was lost, has decided",
    async (outcome) => {
      const { idempotency, sendCommand, prefix } = await newStores();
      let writes = 0;
      const { idempotency: operator } = await newStores({
        prefix,
        sendCommand: async (command, route) => {
          // A write has most arguments. The client sends it twice, and knows the second reply alone.
          if (command.length > 12) {
            writes += 1;
            await sendCommand(command, route);
          }
          return sendCommand(command, route);
        },
      });
      const fence = await fenceOf(idempotency);
      await idempotency.hold(key, "a", "why");
      expect(await operator.resolve(key, outcome, { fence, by: "anna" })).toBe("ok");
      expect(writes).toBe(1);
      const record = (await idempotency.read(key)) ?? (await idempotency.readReleased(key));
      expect(record?.decision).toMatchObject({ outcome, fence, by: "anna", reason: "why" });
      // Another operator's decision about the same attempt is another one.
      expect(await operator.resolve(key, outcome, { fence })).toBe("not-held");
    },
  );

  test("sent again by the client decides nothing about the next owner", async () => {
    const commands: (readonly string[])[] = [];
    const { idempotency, sendCommand, prefix } = await newStores();
    const { idempotency: operator } = await newStores({
      prefix,
      sendCommand: (command, route) => {
        commands.push(command);
        return sendCommand(command, route);
      },
    });
    await idempotency.claim(key, claim);
    await idempotency.hold(key, "a", "the bank did not answer");
    expect(await decide(operator, "released")).toBe("ok");
    await idempotency.claim(key, { ...claim, token: "b" });
    await idempotency.hold(key, "b", "nor this time");
    const [decision = []] = commands.filter(([name]) => name === "EVALSHA" || name === "EVAL").slice(-1);
    const reply = await sendCommand(decision, { key: decision[3], isReadonly: false });
    expect(reply).toEqual([expect.anything(), "changed"]);
    expect(await idempotency.read(key)).toMatchObject({ state: "held", token: "b" });
  });
});

describeOnRedis("a nonce on Redis", () => {
  test("goes by itself, within a second of its end", async () => {
    const { nonces, send } = await newNonces();
    await nonces.claim(use);
    const ttl = Number(await send("PTTL"));
    expect(ttl).toBeGreaterThan(30_000);
    expect(ttl).toBeLessThanOrEqual(61_000);
  });

  test.each([
    ["without its end", "a"],
    ["whose end is no number", "soon:a"],
    ["that is empty", ""],
  ])("whose record is damaged is never fresh: one %s", async (_case, record) => {
    const { nonces, send } = await newNonces();
    await send("SET", record);
    await expect(nonces.claim(use)).rejects.toThrow(/record of a nonce is damaged/);
    expect(await send("GET")).toBe(record);
  });

  test("whose record is of another type is never fresh", async () => {
    const { nonces, send } = await newNonces();
    await send("HSET", "a", "b");
    await expect(nonces.claim(use)).rejects.toThrow(/WRONGTYPE/);
  });
});

/** Stores, and what sends a command on the record of that nonce. */
async function newNonces() {
  const stores = await newStores();
  const name = `${stores.prefix}:nonce:7:keyid-1:n`;
  const send = (command: string, ...args: string[]) =>
    stores.sendCommand([command, name, ...args], { key: name, isReadonly: false });
  return { ...stores, send };
}

async function answerOf(step: () => unknown): Promise<string> {
  try {
    return `answered ${JSON.stringify(await step())}`;
  } catch (error) {
    return String(error);
  }
}
