/** What a record says that an operator has declared as done; when to decide what; and what that does, for who confirms it. */
const ofPayments = {
  declared: "declared as paid",
  when: {
    done: "money has moved, or will be sent by hand after this",
    released: "no money has moved, and the next retry is to pay",
  },
  effect: {
    done: "the payment was made. {time} every retry is answered 409, already processed, and pays nothing.",
    released:
      "no payment was made. The key is free, and the next retry PAYS; if money has moved, it moves twice.",
  },
};

const ofEvents: typeof ofPayments = {
  declared: "declared as processed",
  when: {
    done: "the event was processed, or will be by hand after this",
    released: "it was not processed, and the next delivery is to do it",
  },
  effect: {
    done: "the event was processed. {time} every delivery of it is acknowledged, and nothing is done.",
    released:
      "the event was not processed. The next delivery RUNS its handler; what it has done already is done twice.",
  },
};

/** Events have the usual `keyPrefix` of createWebhookHandler before them; everything else is taken for a payment. */
export function wordingOf(key: string): typeof ofPayments {
  return key.startsWith("webhook-event:") ? ofEvents : ofPayments;
}
