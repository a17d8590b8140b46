import { parseTimestamp, type WebhookEventMap } from "countersign/webhooks";
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { PartyLedger } from "../src/ledgers/parties.ts";
import { inTransaction, testEngines, type TestStorage } from "./test-storage.ts";

let opened: TestStorage;
let eventCount = 0;

function fields(time: string) {
  eventCount += 1;
  return { event_id: `ev-${eventCount}`, timestamp: parseTimestamp(`2024-01-02T03:04:${time}Z`) };
}

function buyer(status: string, time: string, buyer_id = "b-1"): WebhookEventMap["buyer.status_changed"] {
  const data = { buyer_id, old_status: "PENDING", new_status: status };
  return { ...fields(time), type: "buyer.status_changed", data };
}

function seller(status: string, time: string, seller_id = "s-1"): WebhookEventMap["seller.status_changed"] {
  const data = { seller_id, old_status: "PENDING", new_status: status };
  return { ...fields(time), type: "seller.status_changed", data };
}

function reminder(time: string): WebhookEventMap["payment_request.repayment.reminder"] {
  const data = { payment_request_id: "r-1", due_date: "2024-01-31", days_from_due_date: -3 };
  return { ...fields(time), type: "payment_request.repayment.reminder", data };
}

function ordersOf<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, index) =>
    ordersOf(items.filter((_other, at) => at !== index)).map((rest) => [item, ...rest]),
  );
}

/** A ledger whose events are each applied in a transaction that a store opens, as the handler of webhooks does. */
function committing({ stores, parties }: TestStorage): PartyLedger {
  const within =
    <Event>(apply: (event: Event, tx: object) => unknown) =>
    (event: Event) =>
      inTransaction(stores, (tx) => apply(event, tx)) as Promise<void>;
  return {
    ...parties,
    changeBuyer: within(parties.changeBuyer),
    changeSeller: within(parties.changeSeller),
    closePaymentRequest: within(parties.closePaymentRequest),
    countReminder: within(parties.countReminder),
    record: within(parties.record),
  };
}

for (const engine of testEngines) {
  engine.describe(`the party ledger on ${engine.name}`, () => {
    beforeEach(async () => {
      opened = await engine.open();
    });

    describe("the status of a party", () => {
      test.each([
        ["by a second", "05", "06"],
        ["by a nanosecond", "05.123456788", "05.123456789"],
        ["written with fewer digits", "05.09", "05.1"],
        ["against none", "05", "05.000000001"],
        ["with more digits than the newer one", "05.123456789", "05.2"],
      ])("is not changed by an older event, %s", async (_name, older, newer) => {
        const parties = committing(opened);
        await parties.changeBuyer(buyer("ACTIVE", newer));
        await parties.changeBuyer(buyer("PENDING", older));
        await parties.changeSeller(seller("PENDING", older));
        await parties.changeSeller(seller("ACTIVE", newer));
        expect(await parties.inspectState()).toMatchObject({
          buyers: { "b-1": "ACTIVE" },
          sellers: { "s-1": "ACTIVE" },
        });
        expect((await parties.inspectEvents()).map(({ applied }) => applied)).toEqual([1, 1, 1, 1]);
      });

      test("follows the order of arrival where two events have one time", async () => {
        const parties = committing(opened);
        await parties.changeBuyer(buyer("ACTIVE", "05.1"));
        await parties.changeBuyer(buyer("SUSPENDED", "05.100000000"));
        expect((await parties.inspectState()).buyers).toEqual({ "b-1": "SUSPENDED" });
      });

      test.each(["0000-01-01T00:00:00Z", "1969-12-31T23:59:59.9Z", "9999-12-31T23:59:59.999999999Z"])(
        "may be of %s, which 64 bits of nanoseconds cannot all tell",
        async (raw) => {
          const parties = committing(opened);
          await parties.changeBuyer({ ...buyer("ACTIVE", "05"), timestamp: parseTimestamp(raw) });
          expect((await parties.inspectState()).buyers).toEqual({ "b-1": "ACTIVE" });
        },
      );
    });

    describe("a payment request", () => {
      test("counts a reminder once, also when its key was forgotten, and the record says so", async () => {
        const parties = committing(opened);
        const event = reminder("05");
        await parties.countReminder(event);
        await parties.countReminder(event);
        expect((await parties.inspectState()).payment_requests["r-1"]?.reminders).toBe(1);
        expect(await parties.inspectEvents()).toEqual([
          { event_id: event.event_id, type: event.type, applied: 2 },
        ]);
      });
    });

    test("events end in the same state in every order, though each comes twice", async () => {
      const parties = committing(opened);
      const events = [
        () => parties.changeBuyer(older),
        () => parties.changeBuyer(newer),
        () => parties.countReminder(reminded),
        () => parties.closePaymentRequest(repaid),
      ];
      const older = buyer("ACTIVE", "05.123456788", "__proto__");
      const newer = buyer("SUSPENDED", "05.123456789", "__proto__");
      const reminded = reminder("05");
      const repaid: WebhookEventMap["payment_request.repayment.repaid"] = {
        ...fields("06"),
        type: "payment_request.repayment.repaid",
        data: { payment_request_id: "r-1" },
      };
      for (const order of ordersOf(events)) {
        await opened.empty();
        for (const apply of [...order, ...order]) await apply();
        expect(await parties.inspectState()).toEqual({
          buyers: Object.fromEntries([["__proto__", "SUSPENDED"]]),
          sellers: {},
          payment_requests: { "r-1": { status: "CLOSED", reminders: 1 } },
        });
      }
    });

    describe("an event without a common transaction", () => {
      test("changes nothing when it comes again, and is on record once", async () => {
        const { parties } = opened;
        const event = reminder("05");
        await parties.countReminder(event);
        await parties.countReminder(event);
        expect((await parties.inspectState()).payment_requests["r-1"]?.reminders).toBe(1);
        expect(await parties.inspectEvents()).toEqual([
          { event_id: event.event_id, type: event.type, applied: 1 },
        ]);
      });

      test("is applied by one of many attempts at once", async () => {
        const { parties } = opened;
        const event = reminder("05");
        await Promise.all(Array.from({ length: 20 }, async () => parties.countReminder(event)));
        expect((await parties.inspectState()).payment_requests["r-1"]?.reminders).toBe(1);
        expect(await parties.inspectEvents()).toMatchObject([{ applied: 1 }]);
      });
    });

    test("an event that is on record does not undo a later one of the same time", async () => {
      const parties = committing(opened);
      const first = buyer("ACTIVE", "05.1");
      await parties.changeBuyer(first);
      await parties.changeBuyer(buyer("SUSPENDED", "05.1"));
      await parties.changeBuyer(first);
      expect((await parties.inspectState()).buyers).toEqual({ "b-1": "SUSPENDED" });
    });

    test("the events are shown in the order in which they were applied", async () => {
      const parties = committing(opened);
      for (const id of ["z", "a", "m"]) await parties.record({ ...reminder("05"), event_id: id });
      expect((await parties.inspectEvents()).map(({ event_id }) => event_id)).toEqual(["z", "a", "m"]);
    });
  });
}
