import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { memoryLedger, payout, type MemoryLedger } from "./memory-ledger.ts";

let opened: MemoryLedger;

beforeEach(() => {
  opened = memoryLedger();
});

afterEach(() => opened.close());

describe("accept", () => {
  test("writes the payout and the task to execute it", () => {
    const { ledger, outbox } = opened;
    ledger.accept(payout("a.b.c"), () => {});
    expect(ledger.inspect()).toEqual([
      {
        idempotency_key: "a.b.c",
        business_id: "b-1",
        status: "accepted",
        status_reason: null,
        created_at: "1970-01-01T00:00:01.000Z",
        settled_at: null,
      },
    ]);
    expect(outbox.claim("transfer", 1_000, 100)).toMatchObject({ idempotencyKey: "a.b.c", attempts: 1 });
    expect(outbox.claim("confirmation", 1_000, 100)).toBeUndefined();
  });

  test("writes nothing when the key cannot be completed", () => {
    const { ledger, outbox } = opened;
    const lost = (): never => {
      throw new Error("lost");
    };
    expect(() => ledger.accept(payout("a.b.c"), lost)).toThrow("lost");
    expect(ledger.inspect()).toEqual([]);
    expect(outbox.claim("transfer", 1_000, 100)).toBeUndefined();
  });

  test("writes nothing when the key would be completed later", () => {
    expect(() => opened.ledger.accept(payout("a.b.c"), () => Promise.resolve())).toThrow(/synchronous/);
    expect(opened.ledger.inspect()).toEqual([]);
  });

  test("refuses a second payout under the same key, and completes nothing", () => {
    const { ledger } = opened;
    ledger.accept(payout("a.b.c"), () => {});
    let completed = false;
    const complete = (): void => {
      completed = true;
    };
    expect(() => ledger.accept(payout("a.b.c"), complete)).toThrow(/UNIQUE/);
    expect(completed).toBe(false);
    expect(ledger.inspect()).toHaveLength(1);
  });

  test("keeps the digits of the instruction", () => {
    opened.ledger.accept(payout("a.b.c"), () => {});
    expect(opened.ledger.order("a.b.c")).toEqual({
      idempotencyKey: "a.b.c",
      beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example Trading GmbH" },
      reference: "invoice 7",
      instruction: '{"amount":{"value":10.10}}',
    });
  });
});

describe("settle", () => {
  test.each([
    ["executed", { status: "executed" } as const, undefined],
    ["failed", { status: "failed", reason: "closed" } as const, "closed"],
  ])("writes that a transfer was %s, and the task to report it", (status, outcome, reason) => {
    const { ledger, outbox } = opened;
    ledger.accept(payout("a.b.c"), () => {});
    const task = outbox.claim("transfer", 1_000, 100)!;
    opened.now = 2_000;
    ledger.settle(task, outcome);
    expect(ledger.inspect()[0]).toMatchObject({ status, settled_at: "1970-01-01T00:00:02.000Z" });
    expect(ledger.order("a.b.c")).toBeUndefined();
    expect(outbox.claim("transfer", 99_000, 100)).toBeUndefined();
    expect(outbox.claim("confirmation", 2_000, 100)).toMatchObject({ idempotencyKey: "a.b.c" });
    expect(ledger.confirmation("a.b.c")).toEqual({
      idempotencyKey: "a.b.c",
      businessId: "b-1",
      status,
      reason,
      settledAt: new Date(2_000),
    });
  });

  test("keeps the first outcome when a late attempt ends as well", () => {
    const { ledger, outbox } = opened;
    ledger.accept(payout("a.b.c"), () => {});
    const task = outbox.claim("transfer", 1_000, 100)!;
    ledger.settle(task, { status: "executed" });
    ledger.settle(task, { status: "failed", reason: "late" });
    expect(ledger.confirmation("a.b.c")).toMatchObject({ status: "executed", reason: undefined });
    expect(outbox.claim("confirmation", 9_000, 100)).toBeDefined();
    expect(outbox.claim("confirmation", 9_000, 100)).toBeUndefined();
  });
});

test("a payout that is not settled has no confirmation", () => {
  opened.ledger.accept(payout("a.b.c"), () => {});
  expect(() => opened.ledger.confirmation("a.b.c")).toThrow();
});
