import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { memoryStorage, payout, testEngines, type TestStorage } from "./test-storage.ts";

const complete = (): void => {};
const lost = (): never => {
  throw new Error("lost");
};

for (const engine of testEngines) {
  engine.describe(`the payout ledger on ${engine.name}`, () => {
    let opened: TestStorage;

    beforeEach(async () => {
      opened = await engine.open();
    });

    afterEach(() => opened.close());

    describe("accept", () => {
      test("writes the payout and the task to execute it", async () => {
        const { ledger, outbox } = opened;
        expect(await ledger.accept(payout("a.b.c"), complete)).toBe("accepted");
        expect(await ledger.inspect()).toEqual([
          {
            idempotency_key: "a.b.c",
            business_id: "b-1",
            status: "accepted",
            status_reason: null,
            created_at: "1970-01-01T00:00:01.000Z",
            settled_at: null,
          },
        ]);
        expect(await outbox.claim("transfer", 100)).toMatchObject({ idempotencyKey: "a.b.c", attempts: 1 });
        expect(await outbox.claim("confirmation", 100)).toBeUndefined();
      });

      test("writes nothing when the key cannot be completed", async () => {
        const { ledger, outbox } = opened;
        await expect((async () => ledger.accept(payout("a.b.c"), lost))()).rejects.toThrow("lost");
        expect(await ledger.inspect()).toEqual([]);
        expect(await outbox.claim("transfer", 100)).toBeUndefined();
      });

      test("refuses a second payout under the same key", async () => {
        const { ledger } = opened;
        await ledger.accept(payout("a.b.c"), complete);
        const again = async (): Promise<unknown> => ledger.accept(payout("a.b.c"), complete);
        await expect(again()).rejects.toThrow(/unique/i);
        expect(await ledger.inspect()).toHaveLength(1);
      });

      test("ends the key before all else: one that is lost stops a payout that is there, too", async () => {
        const { ledger } = opened;
        await ledger.accept(payout("a.b.c"), complete);
        await expect((async () => ledger.accept(payout("a.b.c"), lost))()).rejects.toThrow("lost");
      });

      test("keeps the digits of the instruction", async () => {
        await opened.ledger.accept(payout("a.b.c"), complete);
        expect(await opened.ledger.order("a.b.c")).toEqual({
          idempotencyKey: "a.b.c",
          beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example Trading GmbH" },
          reference: "invoice 7",
          instruction: '{"amount":{"value":10.10}}',
        });
      });

      test("shows the payouts in the order of their times, and of their arrival within one", async () => {
        const { ledger } = opened;
        opened.now = 2_000;
        for (const key of ["z.b.c", "a.b.c", "m.b.c"]) await ledger.accept(payout(key), complete);
        opened.now = 1_000;
        await ledger.accept(payout("y.b.c"), complete);
        const shown = (await ledger.inspect()).map(({ idempotency_key }) => idempotency_key);
        expect(shown).toEqual(["y.b.c", "z.b.c", "a.b.c", "m.b.c"]);
      });
    });

    describe("accept without a common transaction", () => {
      test("knows a payout that was written before, and neither writes nor executes it again", async () => {
        const { ledger, outbox } = opened;
        expect(await ledger.accept(payout("a.b.c"), undefined)).toBe("accepted");
        expect(await ledger.accept(payout("a.b.c"), undefined)).toBe("known");
        expect(await ledger.inspect()).toHaveLength(1);
        expect(await outbox.claim("transfer", 100)).toBeDefined();
        expect(await outbox.claim("transfer", 100)).toBeUndefined();
      });

      test("tells when the instruction was another one, and keeps the first", async () => {
        const { ledger } = opened;
        await ledger.accept(payout("a.b.c"), undefined);
        const other = { ...payout("a.b.c"), instruction: '{"amount":{"value":99.99}}' };
        expect(await ledger.accept(other, undefined)).toBe("known-otherwise");
        expect(await ledger.order("a.b.c")).toMatchObject({ instruction: '{"amount":{"value":10.10}}' });
      });

      test("accepts one of many at once", async () => {
        const { ledger } = opened;
        const attempts = Array.from({ length: 20 }, async () => ledger.accept(payout("a.b.c"), undefined));
        const acceptances = await Promise.all(attempts);
        expect(acceptances.filter((acceptance) => acceptance === "accepted")).toHaveLength(1);
        expect(acceptances.filter((acceptance) => acceptance === "known")).toHaveLength(19);
        expect(await ledger.inspect()).toHaveLength(1);
      });
    });

    describe("settle", () => {
      test.each([
        ["executed", { status: "executed" } as const, undefined],
        ["failed", { status: "failed", reason: "closed" } as const, "closed"],
      ])("writes that a transfer was %s, and the task to report it", async (status, outcome, reason) => {
        const { ledger, outbox } = opened;
        await ledger.accept(payout("a.b.c"), complete);
        const task = (await outbox.claim("transfer", 100))!;
        opened.now = 2_000;
        await ledger.settle(task, outcome);
        expect((await ledger.inspect())[0]).toMatchObject({ status, settled_at: "1970-01-01T00:00:02.000Z" });
        expect(await ledger.order("a.b.c")).toBeUndefined();
        opened.now = 99_000;
        expect(await outbox.claim("transfer", 100)).toBeUndefined();
        opened.now = 2_000;
        expect(await outbox.claim("confirmation", 100)).toMatchObject({ idempotencyKey: "a.b.c" });
        expect(await ledger.confirmation("a.b.c")).toEqual({
          idempotencyKey: "a.b.c",
          businessId: "b-1",
          status,
          reason,
          settledAt: new Date(2_000),
        });
      });

      test("keeps the first outcome when a late attempt ends as well", async () => {
        const { ledger, outbox } = opened;
        await ledger.accept(payout("a.b.c"), complete);
        const task = (await outbox.claim("transfer", 100))!;
        await ledger.settle(task, { status: "executed" });
        await ledger.settle(task, { status: "failed", reason: "late" });
        expect(await ledger.confirmation("a.b.c")).toMatchObject({ status: "executed", reason: undefined });
        opened.now = 9_000;
        expect(await outbox.claim("confirmation", 100)).toBeDefined();
        expect(await outbox.claim("confirmation", 100)).toBeUndefined();
      });
    });

    test("a payout that is not settled has no confirmation", async () => {
      await opened.ledger.accept(payout("a.b.c"), complete);
      await expect((async () => opened.ledger.confirmation("a.b.c"))()).rejects.toThrow();
    });

    test("check answers", async () => {
      expect(await opened.ledger.check()).toBeUndefined();
    });
  });
}

describe("accept on SQLite", () => {
  test("writes nothing when the key would be completed later", async () => {
    const { ledger, close } = memoryStorage();
    expect(() => ledger.accept(payout("a.b.c"), () => Promise.resolve())).toThrow(/synchronous/);
    expect(ledger.inspect()).toEqual([]);
    await close();
  });
});
