import {
  parseTimestamp,
  type BuyerStatusChanged,
  type PaymentRequestReminder,
  type PaymentRequestRepaid,
  type SellerStatusChanged,
} from "@countersign/webhooks";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { memoryLedger, type MemoryLedger } from "./memory-ledger.ts";

let opened: MemoryLedger;
let eventCount: number;

beforeEach(() => {
  opened = memoryLedger();
  eventCount = 0;
});

afterEach(() => opened.close());

function fields(time: string) {
  eventCount += 1;
  return { event_id: `ev-${eventCount}`, timestamp: parseTimestamp(`2024-01-02T03:04:${time}Z`) };
}

function buyer(status: string, time: string, buyer_id = "b-1"): BuyerStatusChanged {
  const data = { buyer_id, old_status: "PENDING", new_status: status };
  return { ...fields(time), type: "buyer.status_changed", data };
}

function seller(status: string, time: string, seller_id = "s-1"): SellerStatusChanged {
  const data = { seller_id, old_status: "PENDING", new_status: status };
  return { ...fields(time), type: "seller.status_changed", data };
}

function repaid(time: string): PaymentRequestRepaid {
  return {
    ...fields(time),
    type: "payment_request.repayment.repaid",
    data: { payment_request_id: "r-1" },
  };
}

function reminder(time: string): PaymentRequestReminder {
  const data = { payment_request_id: "r-1", due_date: "2024-01-31", days_from_due_date: -3 };
  return { ...fields(time), type: "payment_request.repayment.reminder", data };
}

const done = (): void => {};

describe("the status of a party", () => {
  test("follows its events", () => {
    const { parties } = opened;
    parties.changeBuyer(buyer("ACTIVE", "05"), done);
    parties.changeBuyer(buyer("SUSPENDED", "06"), done);
    parties.changeBuyer(buyer("REJECTED", "05", "b-2"), done);
    parties.changeSeller(seller("INACTIVE", "05"), done);
    expect(parties.inspectState()).toEqual({
      buyers: { "b-1": "SUSPENDED", "b-2": "REJECTED" },
      sellers: { "s-1": "INACTIVE" },
      payment_requests: {},
    });
  });

  test.each([
    ["by a second", "05", "06"],
    ["by a nanosecond", "05.123456788", "05.123456789"],
    ["written with fewer digits", "05.09", "05.1"],
    ["against none", "05", "05.000000001"],
    ["with more digits than the newer one", "05.123456789", "05.2"],
  ])("is not changed by an older event, %s", (_name, older, newer) => {
    const { parties } = opened;
    parties.changeBuyer(buyer("ACTIVE", newer), done);
    parties.changeBuyer(buyer("PENDING", older), done);
    parties.changeSeller(seller("PENDING", older), done);
    parties.changeSeller(seller("ACTIVE", newer), done);
    expect(parties.inspectState()).toMatchObject({
      buyers: { "b-1": "ACTIVE" },
      sellers: { "s-1": "ACTIVE" },
    });
    expect(parties.inspectEvents().map(({ applied }) => applied)).toEqual([1, 1, 1, 1]);
  });

  test("follows the order of arrival where two events have one time", () => {
    const { parties } = opened;
    parties.changeBuyer(buyer("ACTIVE", "05.1"), done);
    parties.changeBuyer(buyer("SUSPENDED", "05.100000000"), done);
    expect(parties.inspectState().buyers).toEqual({ "b-1": "SUSPENDED" });
  });

  test.each(["0000-01-01T00:00:00Z", "1969-12-31T23:59:59.9Z", "9999-12-31T23:59:59.999999999Z"])(
    "may be of %s, which 64 bits of nanoseconds cannot all tell",
    (raw) => {
      const { parties } = opened;
      parties.changeBuyer({ ...buyer("ACTIVE", "05"), timestamp: parseTimestamp(raw) }, done);
      expect(parties.inspectState().buyers).toEqual({ "b-1": "ACTIVE" });
    },
  );

  test("may be one that nobody knows yet, of a party with any id", () => {
    const { parties } = opened;
    parties.changeBuyer(buyer("ON_HOLD", "05", "__proto__"), done);
    expect(JSON.stringify(parties.inspectState().buyers)).toBe('{"__proto__":"ON_HOLD"}');
  });
});

describe("a payment request", () => {
  test("counts its reminders", () => {
    const { parties } = opened;
    parties.countReminder(reminder("05"), done);
    parties.countReminder(reminder("06"), done);
    expect(parties.inspectState().payment_requests).toEqual({
      "r-1": { status: "PENDING_REPAYMENT", reminders: 2 },
    });
  });

  test.each([
    ["after the reminders", ["reminder", "reminder", "repaid"]],
    ["between them", ["reminder", "repaid", "reminder"]],
    ["before them", ["repaid", "reminder", "reminder"]],
  ])("stays CLOSED when it is repaid %s", (_name, order) => {
    const { parties } = opened;
    for (const [index, kind] of order.entries()) {
      if (kind === "repaid") parties.closePaymentRequest(repaid(`1${index}`), done);
      else parties.countReminder(reminder(`1${index}`), done);
    }
    expect(parties.inspectState().payment_requests).toEqual({ "r-1": { status: "CLOSED", reminders: 2 } });
  });

  test("counts a reminder once, also when its completion was forgotten, and the record says so", () => {
    const { parties } = opened;
    const event = reminder("05");
    parties.countReminder(event, done);
    parties.countReminder(event, done);
    expect(parties.inspectState().payment_requests["r-1"]?.reminders).toBe(1);
    expect(parties.inspectEvents()).toEqual([{ event_id: event.event_id, type: event.type, applied: 2 }]);
  });
});

describe("the transaction of an event", () => {
  test("leaves nothing behind when the event cannot be completed", () => {
    const { parties } = opened;
    const lost = (): never => {
      throw new Error("lost");
    };
    expect(() => parties.changeBuyer(buyer("ACTIVE", "05"), lost)).toThrow("lost");
    expect(() => parties.countReminder(reminder("05"), lost)).toThrow("lost");
    expect(() => parties.closePaymentRequest(repaid("05"), lost)).toThrow("lost");
    expect(parties.inspectEvents()).toEqual([]);
    expect(parties.inspectState()).toEqual({ buyers: {}, sellers: {}, payment_requests: {} });
  });

  test("refuses a completion that COMMIT would not wait for", () => {
    const { parties } = opened;
    expect(() => parties.changeBuyer(buyer("ACTIVE", "05"), () => Promise.resolve())).toThrow(/synchronous/);
    expect(parties.inspectEvents()).toEqual([]);
  });

  test("hands the open transaction to the completion", () => {
    const { parties, database } = opened;
    let seen: unknown;
    parties.changeBuyer(buyer("ACTIVE", "05"), (transaction) => {
      seen = transaction.inTransaction && transaction;
    });
    expect(seen).toBe(database);
  });
});
