import { describe, expect, test } from "@jest/globals";
import { createWebhookHandler, parseWebhookEnvelope, type Inbox } from "countersign/webhooks";
import { createHandler, outcomes } from "../events/event-kit.ts";
import {
  buyerEvent,
  otherEvent,
  SharedDatabase,
  webhook,
  type Connection,
  type Process,
} from "./inbox-kit.ts";

const buyer = "buyer.status_changed";

type Handler = Pick<Inbox<Connection, "sync">, "on" | "onOther" | "handle">;

/** The two that take latestOnly, each in a new process: what they registered first is gone. */
const forms: readonly (readonly [string, (app: Process) => Handler, settle: boolean])[] = [
  [
    "createWebhookHandler",
    (app) =>
      createWebhookHandler({
        stores: app.stores,
        fallback: "ignore",
        keyPrefix: "webhook-event:",
        onError: () => {},
      }) as unknown as Handler,
    false,
  ],
  ["createInbox", (app) => app.inbox(), true],
];

describe.each(forms)("latestOnly of %s", (_name, handlerOf, isLater) => {
  async function take(app: Process, handler: Handler, ...events: readonly string[]): Promise<void> {
    const envelope = parseWebhookEnvelope(Buffer.from(webhook(...events)));
    const got = outcomes(await handler.handle(envelope));
    if (isLater) await app.ended(...envelope.events.map(({ event_id }) => event_id));
    else if (!got.every((outcome) => outcome === "done" || outcome === "failed")) throw new Error(got.join());
  }

  test("skips what is older than the newest handled one, of one type and entity, after a restart too", async () => {
    const shared = new SharedDatabase();
    const stale: string[] = [];
    const begin = () => {
      const app = shared.open();
      const handler = handlerOf(app);
      handler.on(
        buyer,
        ({ event_id }, { tx }) => {
          app.write(tx, event_id);
          return undefined;
        },
        { latestOnly: { onStale: ({ event_id }) => void stale.push(event_id) } },
      );
      return { app, handler };
    };
    const first = begin();
    await take(first.app, first.handler, buyerEvent("newer", { at: 5 }), buyerEvent("older", { at: 4 }));
    await take(first.app, first.handler, buyerEvent("same time", { at: 5 }));
    const next = begin();
    await take(
      next.app,
      next.handler,
      buyerEvent("between", { at: 3 }),
      buyerEvent("of another", { at: 1, buyer: "b2" }),
      buyerEvent("newest", { at: 6 }),
    );
    expect(new Set(next.app.effects())).toEqual(new Set(["newer", "same time", "of another", "newest"]));
    expect(stale).toEqual(["older", "between"]);
  });

  test("keeps a type with a subject apart from what they are together", async () => {
    const app = new SharedDatabase().open();
    const handler = handlerOf(app);
    const [whole, part] = ["loan granted", "loan"];
    for (const [type, subject] of [
      [whole, "x"],
      [part, "granted x"],
    ] as const) {
      handler.onOther(type, ({ event_id }, { tx }) => app.write(tx, event_id), {
        latestOnly: { subject: () => subject },
      });
    }
    await take(
      app,
      handler,
      otherEvent("newer", whole),
      otherEvent("other", part).replace("03:04:05", "03:04:04"),
    );
    expect(new Set(app.effects())).toEqual(new Set(["newer", "other"]));
  });

  test("keeps no time of a handler that failed, nor mixes types", async () => {
    const app = new SharedDatabase().open();
    const handler = handlerOf(app);
    let calls = 0;
    handler.on(
      buyer,
      ({ event_id }, { tx }) => {
        calls += 1;
        app.write(tx, event_id);
        if (calls === 1) throw new Error("not yet");
        return undefined;
      },
      { latestOnly: true },
    );
    handler.onOther(
      "loan.granted",
      ({ event_id }, { tx }) => {
        app.write(tx, event_id);
        return undefined;
      },
      // The same text as the buyer's.
      { latestOnly: { subject: () => "buyer:b1" } },
    );
    if (isLater) {
      // Its second attempt is the one that counts.
      await take(app, handler, buyerEvent("newer", { at: 9 }));
      expect(app.effects()).toEqual(["newer"]);
    } else {
      await take(app, handler, buyerEvent("failed", { at: 9 }));
      await take(app, handler, buyerEvent("older", { at: 8 }));
      expect(app.effects()).toEqual(["older"]);
    }
    await take(app, handler, otherEvent("other"));
    expect(app.effects().at(-1)).toBe("other");
  });

  test.each<[string, (handler: Handler) => unknown, RegExp]>([
    [
      "a type without a default subject",
      (handler) => handler.onOther("loan.granted", () => undefined, { latestOnly: true }),
      /option onOther\("loan.granted"\).latestOnly.subject must be a function/,
    ],
    [
      "an unknown option",
      (handler) => handler.on(buyer, () => undefined, { latest: true } as object),
      /unknown option on\("buyer.status_changed"\).latest;/,
    ],
    ["false", (handler) => handler.on(buyer, () => undefined, { latestOnly: false } as object), /latestOnly/],
    [
      "an async onStale on SQLite",
      (handler) => handler.on(buyer, () => undefined, { latestOnly: { onStale: async () => {} } } as object),
      /onStale is async/,
    ],
  ])("refuses %s", (_case, register, message) => {
    expect(() => register(handlerOf(new SharedDatabase().open()))).toThrow(message);
  });
});

test("latestOnly of a subject that is no text fails the event", async () => {
  const app = new SharedDatabase().open();
  const errors: unknown[] = [];
  const handler = createWebhookHandler({
    stores: app.stores,
    fallback: "ignore",
    onError: ({ error }) => void errors.push(error),
  }).on(buyer, () => {}, { latestOnly: { subject: () => "" } });
  const outcome = await handler.handle(parseWebhookEnvelope(Buffer.from(webhook(buyerEvent("ev_1")))));
  expect(outcomes(outcome)).toEqual(["failed"]);
  expect(errors).toMatchObject([
    { message: expect.stringContaining("latestOnly.subject must be a function that") },
  ]);
});

test.each<[string, () => unknown, RegExp]>([
  [
    "lease mode",
    () => createHandler().on(buyer, () => {}, { latestOnly: true }),
    /takes options only beside stores/,
  ],
  [
    "stores without a table of work",
    () => {
      const { idempotency, nonces, transactions } = new SharedDatabase().open().stores;
      return createWebhookHandler({
        stores: { idempotency, nonces, transactions },
        fallback: "ignore",
      }).on(buyer, () => {}, { latestOnly: true });
    },
    /has no table of work/,
  ],
  [
    "onAtLeastOnce",
    () => {
      const inbox: Inbox<Connection, "sync"> = new SharedDatabase().open().inbox();
      // @ts-expect-error -- a third argument
      inbox.onAtLeastOnce(buyer, () => {}, { latestOnly: true });
    },
    /takes no options/,
  ],
])("latestOnly is refused in %s", (_where, register, message) => {
  expect(register).toThrow(message);
});
