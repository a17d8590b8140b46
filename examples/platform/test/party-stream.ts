import * as fc from "fast-check";
import type { InspectedState } from "../src/ledgers/parties.ts";

/** An event as it is on the wire. */
export interface WireEvent {
  readonly event_id: string;
  readonly timestamp: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Events in the order in which they happened, and the state that the service has after the last one. */
export interface PartyStream {
  readonly events: readonly WireEvent[];
  readonly state: InspectedState;
}

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom("buyer", "seller", "remind", "repay", "unknown"),
    id: fc.constantFrom("1", "2", "__proto__"),
    status: fc.constantFrom("PENDING", "ACTIVE", "INACTIVE", "REJECTED", "SUSPENDED", "NEW"),
    // Neighbours are a nanosecond apart as well as days.
    laterBy: fc.oneof(fc.constant(1n), fc.bigInt(1n, 2_000_000n), fc.bigInt(1n, 10n ** 14n)),
    fewestDigits: fc.boolean(),
  }),
  { minLength: 1, maxLength: 30 },
);

type Step = typeof steps extends fc.Arbitrary<readonly (infer One)[]> ? One : never;

/** Streams of a service that obeys its own state rules. */
export const partyStreams: fc.Arbitrary<PartyStream> = steps.map((all) => {
  const buyers = new Map<string, string>();
  const sellers = new Map<string, string>();
  const requests = new Map<string, { readonly status: string; readonly reminders: number }>();
  let now = 1_704_164_645_000_000_000n;

  function dataOf({ kind, id, status }: Step): Pick<WireEvent, "type" | "data"> | undefined {
    if (kind === "buyer" || kind === "seller") {
      const parties = kind === "buyer" ? buyers : sellers;
      const old_status = parties.get(id) ?? "PENDING";
      parties.set(id, status);
      return {
        type: `${kind}.status_changed`,
        data: { [`${kind}_id`]: id, old_status, new_status: status },
      };
    }
    if (kind === "unknown") return { type: "buyer.limit_changed", data: { buyer_id: id } };
    const request = requests.get(id) ?? { status: "PENDING_REPAYMENT", reminders: 0 };
    if (request.status === "CLOSED") return undefined;
    if (kind === "repay") {
      requests.set(id, { ...request, status: "CLOSED" });
      return { type: "payment_request.repayment.repaid", data: { payment_request_id: id } };
    }
    requests.set(id, { ...request, reminders: request.reminders + 1 });
    return {
      type: "payment_request.repayment.reminder",
      data: { payment_request_id: id, due_date: "2024-01-31", days_from_due_date: "-3" },
    };
  }

  const events = all.flatMap((step, index) => {
    now += step.laterBy;
    const event = dataOf(step);
    return event === undefined
      ? []
      : [{ event_id: `ev-${index}`, timestamp: timestampOf(now, step.fewestDigits), ...event }];
  });
  const state = {
    buyers: Object.fromEntries(buyers),
    sellers: Object.fromEntries(sellers),
    payment_requests: Object.fromEntries(requests),
  };
  return { events, state };
});

function timestampOf(epochNanoseconds: bigint, fewestDigits: boolean): string {
  const seconds = new Date(Number(epochNanoseconds / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
  const nine = String(epochNanoseconds % 1_000_000_000n).padStart(9, "0");
  const fraction = fewestDigits ? nine.replace(/0+$/, "") : nine;
  return fraction === "" ? `${seconds}Z` : `${seconds}.${fraction}Z`;
}
