import { describe, expect, test } from "@jest/globals";
import { OptionError } from "@countersign/core";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { createInbox, type CreateInboxOptions, type Inbox } from "countersign/webhooks";
import { SharedDatabase, type Connection, type TestInbox } from "./inbox-kit.ts";

const buyer = "buyer.status_changed";

interface Pool {
  query(text: string): Promise<number>;
}

/** Only compiled: what handlers may write where transactions are asynchronous. */
export function typesOfHandlers(inbox: Inbox<Pool, "async">, sync: TestInbox): void {
  inbox.on(buyer, async ({ data }, { tx, attempt }) => {
    await tx.query(data.buyer_id + String(attempt));
  });
  inbox.onAtLeastOnce("seller.status_changed", async ({ data }, { commit, signal }) => {
    const rows: number = await commit(async (tx) => tx.query(data.seller_id));
    const one: number = await commit(() => 1);
    return [rows, one, signal.aborted];
  });
  // @ts-expect-error -- acts outside: it has no transaction
  inbox.onAtLeastOnce(buyer, (_event, { tx }: { tx: Pool }) => tx.query(""));
  inbox.onOtherAtLeastOnce("loan.granted", ({ data }) => {
    // @ts-expect-error -- nothing is known of its data
    return data.amount;
  });
  // @ts-expect-error -- a known type
  inbox.onOtherAtLeastOnce(buyer, () => {});
  inbox.on(buyer, () => {}, { latestOnly: { subject: ({ data }) => data.buyer_id } });
  // @ts-expect-error -- of another event
  inbox.on(buyer, () => {}, { latestOnly: { subject: ({ data }) => data.seller_id } });
  sync.onAtLeastOnce(buyer, async (_event, { commit }) => {
    const one: number = await commit(() => 1);
    return one;
  });
}

describe("createInbox()", () => {
  test.each<[string, object, string]>([
    ["no fallback", { fallback: undefined }, "option fallback must be"],
    ["an async fallback on SQLite", { fallback: async () => {} }, "option fallback is async"],
    ["a name with other characters", { name: "Inbox_1" }, "option name must be 1 to 64 of a-z, 0-9 and -"],
    ["a store of lease mode", { stores: memoryIdempotencyStore() }, "option stores has no transactions"],
    ["a lease too short", { leaseMs: 3_000 }, "option storeTimeoutMs must be at most half of leaseMs"],
    ["an unknown option", { retries: 3 }, "unknown option retries"],
    ["an entityOf that is no function", { entityOf: "buyer" }, "option entityOf must be a function"],
  ])("refuses %s", (_case, changes, message) => {
    const { stores } = new SharedDatabase().open();
    const options = { stores, fallback: "ignore", ...changes } as CreateInboxOptions<Connection, "sync">;
    expect(() => createInbox(options)).toThrow(OptionError);
    expect(() => createInbox(options)).toThrow(`createInbox: ${message}`);
  });

  test("refuses stores of another inbox, unless both are named", () => {
    const { stores } = new SharedDatabase().open();
    createInbox({ stores, fallback: "ignore" });
    expect(() => createInbox({ stores, fallback: "ignore" })).toThrow(
      'give each of them an option name, for example name: "ledger" and name: "mail"',
    );
    createInbox({ stores, fallback: "ignore", name: "mail" });
  });
});

describe("registration at an inbox", () => {
  test.each<[string, (inbox: TestInbox) => unknown, string]>([
    [
      "a typo",
      (inbox) => inbox.onAtLeastOnce("buyer.changed" as typeof buyer, () => {}),
      "onOtherAtLeastOnce(",
    ],
    [
      "a known type as another",
      (inbox) => inbox.onOtherAtLeastOnce(buyer as never, () => {}),
      "write onAtLeastOnce(",
    ],
    [
      "two handlers of a type",
      (inbox) => inbox.on(buyer, () => {}).onAtLeastOnce(buyer, () => {}),
      "has a handler already",
    ],
    [
      "an async handler in the transaction",
      // @ts-expect-error -- a promise
      (inbox) => inbox.on(buyer, async () => {}),
      "is async",
    ],
    [
      "onAny() beside a handler that acts outside",
      (inbox) => inbox.onAtLeastOnce(buyer, () => {}).onAny(() => {}),
      "exclude each other",
    ],
    [
      "a handler that acts outside beside onAny()",
      (inbox) => inbox.onAny(() => {}).onAtLeastOnce(buyer, () => {}),
      "exclude each other",
    ],
    [
      "a handler after start()",
      (inbox) => {
        inbox.start();
        inbox.start();
        inbox.on(buyer, () => {});
      },
      "register every handler before",
    ],
  ])("refuses %s", (_case, register, message) => {
    const inbox = new SharedDatabase().open().inbox();
    expect(() => register(inbox)).toThrow(message);
  });
});
