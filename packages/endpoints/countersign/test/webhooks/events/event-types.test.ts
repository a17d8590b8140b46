import { describe, expect, test } from "@jest/globals";
import type { KnownEventType, UnknownWebhookEvent } from "../../../dist/webhooks/envelope/events.js";
import type { CreateWebhookHandlerOptions, WebhookEventMap, WebhookHandler } from "countersign/webhooks";
import { collectNotices, createHandler, handleAll, wireEvent } from "./event-kit.ts";

/** Only compiled: what a caller may write, and what the compiler has to refuse. */
export function typesOfHandlers(
  handler: WebhookHandler,
  mixed: KnownEventType | "invoice.created",
  party: "buyer.status_changed" | "seller.status_changed",
): void {
  handler.on("buyer.status_changed", ({ data }) => data.new_status.length);
  handler.on("payment_request.repayment.reminder", ({ data }) => data.days_from_due_date.toFixed());
  // @ts-expect-error -- a typo
  handler.on("buyer.status_change", () => {});
  // @ts-expect-error -- a type that the spec does not name
  handler.on("invoice.created", () => {});
  const anyType: string = "buyer.status_changed";
  // @ts-expect-error -- not known to be known
  handler.on(anyType, () => {});
  // @ts-expect-error -- a known type
  handler.onOther("buyer.status_changed", () => {});
  // @ts-expect-error -- a known type among others
  handler.onOther(mixed, () => {});
  handler.onOther(anyType, () => {});
  handler.onOther("invoice.created", (event: UnknownWebhookEvent) => event.type);
  // @ts-expect-error -- nothing is known of its data
  handler.onOther("invoice.created", ({ data }) => data.amount);
  handler.on(party, ({ data }) => data.new_status);
}

export function typesOfFields(event: WebhookEventMap["buyer.status_changed"]): unknown[] {
  // @ts-expect-error -- a typo
  const typo: unknown = event.data.buyer_idd;
  // @ts-expect-error -- of another event
  const foreign: unknown = event.data.payment_request_id;
  // @ts-expect-error -- of the envelope
  const outer: unknown = event.webhook_id;
  // @ts-expect-error -- a typo in another way
  const { new_statuss } = event.data;
  const fields: Readonly<Record<string, unknown>> = { ...event.data };
  // @ts-expect-error -- a further field is unknown until it is checked
  const reason: string = fields["reason"];
  return [typo, foreign, outer, new_statuss, reason];
}

describe("on()", () => {
  test.each(["buyer.status_change", "invoice.created", "constructor", ""])(
    "refuses a type that is not known: %j",
    (type) => {
      const register = (): unknown => createHandler().on(type as KnownEventType, () => {});
      expect(register).toThrow(TypeError);
      expect(register).toThrow("the known types are buyer.status_changed, seller.status_changed, ");
      expect(register).toThrow("onOther(");
    },
  );
});

describe("onOther()", () => {
  test("takes a type that the spec does not name, once", async () => {
    const seen: string[] = [];
    const handler = createHandler().onOther("invoice.created", ({ event_id }) => void seen.push(event_id));
    expect(() => handler.onOther("invoice.created", () => {})).toThrow(
      'onOther: the type "invoice.created" has a handler already',
    );
    expect(await handleAll(handler, wireEvent("a", { type: "invoice.created", data: 5 }))).toEqual(["done"]);
    expect(seen).toEqual(["a"]);
  });

  test("refuses a known type and names on()", () => {
    const type = "seller.status_changed" as string;
    expect(() => createHandler().onOther(type, () => {})).toThrow(
      new TypeError(
        'createWebhookHandler: onOther: "seller.status_changed" is a known type; write on("seller.status_changed", ...)',
      ),
    );
  });

  test("refuses a handler that is none", () => {
    expect(() => createHandler().onOther("invoice.created", undefined as never)).toThrow(
      'createWebhookHandler: option onOther("invoice.created") must be a function',
    );
  });
});

describe('a type that fallback "ignore" acknowledges', () => {
  const ofType = (event_id: string, type: string) => wireEvent(event_id, { type });
  const create = (options: Partial<CreateWebhookHandlerOptions> = {}): WebhookHandler =>
    createHandler(options).on("buyer.status_changed", () => {});

  test("is a notice the first time", async () => {
    const notices = collectNotices();
    const handler = create();
    const line = 'new"\u00e9type';
    expect(await handleAll(handler, ofType("a", line), "b", ofType("c", line))).toEqual([
      "ignored",
      "done",
      "ignored",
    ]);
    await handleAll(handler, ofType("d", line), ofType("e", "other"));
    expect(notices.map(({ guard, code }) => `${guard} ${code}`)).toEqual([
      "createWebhookHandler event-type-ignored",
      "createWebhookHandler event-type-ignored",
    ]);
    expect(notices[0]?.message).toContain(String.raw`"new\"`);
  });

  test("is one as soon as somebody listens, for what nobody has heard", async () => {
    const handler = create();
    await handleAll(handler, ofType("a", "new"));
    const notices = collectNotices();
    await handleAll(handler, ofType("b", "new"), ofType("c", "new"));
    expect(notices.map(({ code }) => code)).toEqual(["event-type-ignored"]);
  });

  test("is one also when the spec names it", async () => {
    const notices = collectNotices();
    const repaid = wireEvent("a", {
      type: "payment_request.repayment.repaid",
      data: { payment_request_id: "p" },
    });
    expect(await handleAll(create(), repaid)).toEqual(["ignored"]);
    expect(notices.map(({ code }) => code)).toEqual(["event-type-ignored"]);
  });

  test("is none where a fallback or onAny() gets it", async () => {
    const notices = collectNotices();
    await handleAll(create({ fallback: () => {} }), ofType("a", "new"));
    await handleAll(
      create().onAny(() => {}),
      ofType("a", "new"),
    );
    expect(notices).toEqual([]);
  });

  test("is forgotten beyond a thousand others: no sender fills the memory", async () => {
    const notices = collectNotices();
    const handler = create();
    const many = Array.from({ length: 1_000 }, (_, index) => ofType(`e${index}`, `type-${index}`));
    await handleAll(handler, ...many);
    expect(await handleAll(handler, ofType("a", "one more"))).toEqual(["ignored"]);
    expect(notices).toHaveLength(1_000);
  });
});
