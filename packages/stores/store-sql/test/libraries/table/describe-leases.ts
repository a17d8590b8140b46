import { expect, test } from "@jest/globals";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { type OpenStores, openEach } from "./payer.ts";
import { describeOn, type TableRow } from "./row.ts";

const claim = { token: "t", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
const duplicate = { ...claim, token: "other", fingerprint: "other" };
const fence = expect.any(Number);

/** What the stores of lease mode read by the library: it may give a type of column another form than its driver. */
export function describeLeases<Tx>(row: TableRow<Tx>): void {
  let stores: OpenStores<Tx>;

  describeOn(row.engine)(`lease mode by ${row.name}`, () => {
    openEach(row, (made) => ({ stores } = made));

    test("tells a duplicate for how long the key is another's", async () => {
      const { idempotency } = stores;
      expect(await idempotency.claim("a", claim)).toEqual({ status: "acquired", fence });
      expectRest(60_000, await idempotency.claim("a", duplicate));
      // A shorter lease cuts the owner's.
      expectRest(1_000, await idempotency.claim("a", { ...duplicate, leaseMs: 1_000 }));
      expect(await idempotency.heartbeat("a", "t", 60_000)).toBe("ok");
      expectRest(60_000, await idempotency.read("a"));
      const listed = await idempotency.list?.({ state: "running", limit: 10 });
      expect(listed?.entries.map(({ key }) => key)).toEqual(["a"]);
    });

    test("leaves a run whose lease has ended to an operator, and keeps the decision", async () => {
      const { idempotency } = stores;
      await idempotency.claim("a", { ...claim, leaseMs: 1 });
      const held = { status: "held", fingerprint: "f", reason: "lease-expired" };
      await eventually(async () => (await idempotency.claim("a", duplicate)).status === "held");
      expect(await idempotency.claim("a", duplicate)).toEqual(held);
      const record = await idempotency.read("a");
      expect(record).toMatchObject({ state: "held", token: "t", fence });
      const decision = { fence: record?.fence ?? 0, by: "anna", note: "it was paid" };
      const kept = { ...decision, outcome: "released", reason: "lease-expired", at: expect.any(Number) };
      expect(await idempotency.resolve("a", "released", decision)).toBe("ok");
      expect(await idempotency.readReleased("a")).toMatchObject({ state: "free", decision: kept });
      expect(await idempotency.reopen("a", decision)).toBe("ok");
      expect(await idempotency.claim("a", duplicate)).toEqual(held);
      const again = await idempotency.read("a");
      expect(again?.decision?.reopened).toMatchObject({ by: "anna", at: expect.any(Number) });
      expect(await idempotency.resolve("a", "done", { fence: again?.fence ?? 0 })).toBe("ok");
      expect(await idempotency.claim("a", duplicate)).toEqual({ status: "done", fingerprint: "f" });
      expect(await idempotency.prune()).toBe(0);
    });

    test("sees a nonce twice, and finds an answer as it was kept", async () => {
      const { nonces, answers } = stores;
      const nonce = { scope: "s", nonce: "n", token: "t", retainMs: 60_000 };
      expect(await nonces.claim(nonce)).toBe("fresh");
      expect(await nonces.claim({ ...nonce, token: "other" })).toBe("seen");
      const bytes = Uint8Array.of(0, 39, 92, 255);
      await answers.keep("t", bytes);
      expect([...((await answers.find("t")) ?? [])]).toEqual([...bytes]);
      expect(await answers.find("other")).toBeUndefined();
    });
  });
}

function expectRest(mostMs: number, answer: object | undefined): void {
  const remainingMs = Number(Reflect.get(Object(answer), "remainingMs"));
  expect(answer).toMatchObject({ fingerprint: "f" });
  expect(remainingMs).toBeGreaterThan(0);
  expect(remainingMs).toBeLessThanOrEqual(mostMs);
}
