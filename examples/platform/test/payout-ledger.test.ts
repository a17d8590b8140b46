import { beforeEach, describe, expect, test } from "@jest/globals";
import type { TransferOrder, TransferOutcome } from "../src/bank-rail.ts";
import { accept, inTransaction, payout, tasks, testEngines, type TestStorage } from "./test-storage.ts";

const lost = (): never => {
  throw new Error("lost");
};

for (const engine of testEngines) {
  engine.describe(`the payout ledger on ${engine.name}`, () => {
    let opened: TestStorage;

    beforeEach(async () => {
      opened = await engine.open();
    });

    describe("accept", () => {
      test("writes the payout and the task to execute it", async () => {
        const { ledger } = opened;
        expect(await accept(opened, payout("a.b.c"))).toBe("accepted");
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
        expect(await tasks(opened, "transfers")).toMatchObject([{ id: "a.b.c", attempts: 0 }]);
        expect(await tasks(opened, "outcomes")).toEqual([]);
      });

      test("writes nothing when the transaction of the endpoint fails", async () => {
        await expect(accept(opened, payout("a.b.c"), lost)).rejects.toThrow("lost");
        expect(await opened.ledger.inspect()).toEqual([]);
        expect(await tasks(opened, "transfers")).toEqual([]);
      });

      test("refuses a second payout under the same key", async () => {
        const { ledger } = opened;
        await accept(opened, payout("a.b.c"));
        await expect(accept(opened, payout("a.b.c"))).rejects.toThrow(/unique/i);
        expect(await ledger.inspect()).toHaveLength(1);
      });

      test("keeps the digits of the instruction", async () => {
        await accept(opened, payout("a.b.c"));
        const [task] = await tasks(opened, "transfers");
        expect(JSON.parse(task!.body)).toEqual({
          idempotencyKey: "a.b.c",
          businessId: "b-1",
          beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example Trading GmbH" },
          reference: "invoice 7",
          instruction: '{"amount":{"value":10.10}}',
        });
      });

      test("shows the payouts in the order of their times, and of their arrival within one", async () => {
        const { ledger } = opened;
        opened.now = 2_000;
        for (const key of ["z.b.c", "a.b.c", "m.b.c"]) await accept(opened, payout(key));
        opened.now = 1_000;
        await accept(opened, payout("y.b.c"));
        const shown = (await ledger.inspect()).map(({ idempotency_key }) => idempotency_key);
        expect(shown).toEqual(["y.b.c", "z.b.c", "a.b.c", "m.b.c"]);
      });
    });

    describe("accept without a common transaction", () => {
      test("knows a payout that was written before, and neither writes nor executes it again", async () => {
        const { ledger } = opened;
        expect(await ledger.accept(payout("a.b.c"))).toBe("accepted");
        expect(await ledger.accept(payout("a.b.c"))).toBe("known");
        expect(await ledger.inspect()).toHaveLength(1);
        expect(await tasks(opened, "transfers")).toMatchObject([{ id: "a.b.c" }]);
        expect(await tasks(opened, "outcomes-expected")).toMatchObject([{ id: "a.b.c" }]);
      });

      test("tells when the instruction was another one, and keeps the first", async () => {
        const { ledger } = opened;
        await ledger.accept(payout("a.b.c"));
        const other = { ...payout("a.b.c"), bodyText: () => '{"amount":{"value":99.99}}' };
        expect(await ledger.accept(other)).toBe("known-otherwise");
        const [task, ...others] = await tasks(opened, "transfers");
        expect(JSON.parse(task!.body)).toMatchObject({ instruction: '{"amount":{"value":10.10}}' });
        expect(others).toEqual([]);
      });

      test("accepts one of many at once", async () => {
        const { ledger } = opened;
        const attempts = Array.from({ length: 20 }, async () => ledger.accept(payout("a.b.c")));
        const acceptances = await Promise.all(attempts);
        expect(acceptances.filter((acceptance) => acceptance === "accepted")).toHaveLength(1);
        expect(acceptances.filter((acceptance) => acceptance === "known")).toHaveLength(19);
        expect(await ledger.inspect()).toHaveLength(1);
      });
    });

    describe("settle", () => {
      async function settle(outcome: TransferOutcome, after: () => void = () => {}): Promise<void> {
        const [task] = await tasks(opened, "transfers");
        const order = JSON.parse(task!.body) as TransferOrder;
        const { ledger } = opened;
        await inTransaction(opened.stores, (tx) => {
          const settled = ledger.settle(order, outcome, tx);
          return settled instanceof Promise ? settled.then(after) : after();
        });
      }

      test.each([
        ["executed", { status: "executed" } as const, undefined],
        ["failed", { status: "failed", reason: "closed" } as const, "closed"],
      ])("writes that a transfer was %s, and the task to report it", async (status, outcome, reason) => {
        await accept(opened, payout("a.b.c"));
        opened.now = 2_000;
        await settle(outcome);
        const settledAt = "1970-01-01T00:00:02.000Z";
        expect((await opened.ledger.inspect())[0]).toMatchObject({ status, settled_at: settledAt });
        const [task] = await tasks(opened, "outcomes");
        const reported = { idempotencyKey: "a.b.c", business_id: "b-1", status, reason, settledAt };
        expect(JSON.parse(task!.body)).toEqual(reported);
      });

      test("keeps the first outcome, and tells no other", async () => {
        await accept(opened, payout("a.b.c"));
        await settle({ status: "executed" });
        await expect(settle({ status: "failed", reason: "late" })).rejects.toMatchObject({
          code: "outcome-differs",
        });
        expect((await opened.ledger.inspect())[0]).toMatchObject({ status: "executed", status_reason: null });
        expect(await tasks(opened, "outcomes")).toHaveLength(1);
      });

      test("writes nothing when its transaction fails", async () => {
        await accept(opened, payout("a.b.c"));
        await expect(settle({ status: "executed" }, lost)).rejects.toThrow("lost");
        expect((await opened.ledger.inspect())[0]).toMatchObject({ status: "accepted" });
        expect(await tasks(opened, "outcomes")).toEqual([]);
      });
    });
  });
}
