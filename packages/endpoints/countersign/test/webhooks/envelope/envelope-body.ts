export const buyerEvent = {
  event_id: "ev_1",
  timestamp: "2024-01-02T03:04:05.123456789Z",
  type: "buyer.status_changed",
  data: { buyer_id: "b_1", old_status: "PENDING", new_status: "ACTIVE" },
};

export const reminderEvent = {
  event_id: "ev_1",
  timestamp: "2024-01-02T03:04:05Z",
  type: "payment_request.repayment.reminder",
  data: { payment_request_id: "p_1", due_date: "2024-01-05", days_from_due_date: -3 },
};

/** An envelope around `events`, which need not be valid. */
export function envelopeOf(...events: readonly unknown[]): Record<string, unknown> {
  return { webhook_id: "wh_1", timestamp: "2024-01-02T03:04:06Z", events };
}

export function bodyOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
