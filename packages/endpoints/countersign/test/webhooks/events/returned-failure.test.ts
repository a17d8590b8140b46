// A handler that returns what it meant to throw: acknowledged, its event would be lost.
import { GuardError } from "@countersign/core";
import { createWebhookHandler } from "countersign/webhooks";
import { describe, expect, test } from "@jest/globals";
import { buyerEvent, SharedDatabase, send, webhook } from "../inbox/inbox-kit.ts";
import { createHandler, envelope, handleAll, memoryStore, outcomes, sqlite } from "./event-kit.ts";
import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";

const buyer = "buyer.status_changed";
const returned: readonly (readonly [string, () => unknown])[] = [
  ["an Error", () => new Error("no such buyer")],
  ["a refusal", () => new GuardError({ status: 400, code: "unknown-buyer", message: "no such buyer" })],
  ["a Response", () => new Response("no such buyer", { status: 500 })],
];
const told = expect.stringMatching(/no such buyer|returned a Response/);

describe.each(returned)("a handler that returns %s", (_what, make) => {
  test.each<[string, () => unknown]>([
    ["at once", make],
    ["by a promise", async () => make()],
  ])("%s, in lease mode: it runs again", async (_how, answer) => {
    const errors: unknown[] = [];
    let runs = 0;
    const handler = createHandler({ onError: ({ error }) => errors.push((error as Error).message) });
    handler.on(buyer, () => ((runs += 1) === 1 ? answer() : "saved"));
    expect(await handleAll(handler, "a", "b")).toEqual(["failed", "done"]);
    expect(await handleAll(handler, "a", "b")).toEqual(["done", "duplicate"]);
    expect(errors).toEqual([told]);
  });

  test("in a transaction: what it wrote is rolled back, and it runs again", async () => {
    const { stores, database } = sqlite();
    database.exec("CREATE TABLE effects (event_id TEXT NOT NULL) STRICT");
    let runs = 0;
    const handler = createWebhookHandler({
      stores,
      onError: () => {},
      fallback({ event_id }, { tx }) {
        tx.prepare("INSERT INTO effects VALUES (?)").run(event_id);
        return (runs += 1) === 1 ? (make() as object) : undefined;
      },
    });
    const effects = (): unknown => database.prepare("SELECT event_id FROM effects").all();
    expect(outcomes(await handler.handle(envelope("a")))).toEqual(["failed"]);
    expect(effects()).toEqual([]);
    expect(outcomes(await handler.handle(envelope("a")))).toEqual(["done"]);
    expect(effects()).toEqual([{ event_id: "a" }]);
  });

  test("of an inbox, in its transaction or outside: the task runs again", async () => {
    const app = new SharedDatabase().open();
    let runs = 0;
    const answer = (): object | undefined => ((runs += 1) % 2 === 1 ? (make() as object) : undefined);
    const [inside, outside] = [app.inbox({ name: "inside" }), app.inbox({ name: "outside" })];
    inside.on(buyer, answer);
    outside.onAtLeastOnce(buyer, answer);
    for (const [name, inbox] of Object.entries({ inside, outside })) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await send(inbox, webhook(buyerEvent(name)))).toBe(200);
      // oxlint-disable-next-line no-await-in-loop -- see above
      await app.endedIn(name, name);
      // oxlint-disable-next-line no-await-in-loop -- see above
      expect(await app.task(name, name)).toMatchObject({ state: "done", attempts: 2 });
    }
  });

  test("as onDeadLetter: the event is not given up", async () => {
    const store = memoryStore();
    const handler = createHandler({ store, maxAttempts: 1, onDeadLetter: make });
    handler.on(buyer, () => {
      throw new Error("always");
    });
    expect(await handleAll(handler, "a")).toEqual(["failed"]);
    expect(store.read("webhook-event:a")).toBeUndefined();
    expectWarning(/^\[dead-letter-failed\] .* has an onDeadLetter\(\) that failed$/);
  });
});
