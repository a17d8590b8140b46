import { describe, expect, jest, test } from "@jest/globals";
import { withImmediateTransaction } from "@countersign/store-sql/sqlite";
import type { EventContext, WebhookEvent } from "countersign/webhooks";
import { collectNotices, createHandler, faultyStore, handleAll, sqlite } from "./event-kit.ts";

const buyer = "buyer.status_changed";
const broken = new Error("no such buyer");

function setUp() {
  const { store, database } = sqlite();
  database.exec("CREATE TABLE effects (event_id TEXT NOT NULL) STRICT");
  const insert = database.prepare("INSERT INTO effects VALUES (?)");
  const apply = ({ event_id }: WebhookEvent, { completeIn }: EventContext, fail?: Error): void => {
    withImmediateTransaction(database, (tx) => {
      insert.run(event_id);
      const completed = completeIn(tx);
      if (fail !== undefined) throw fail;
      return completed;
    });
  };
  const effects = (): number => database.prepare("SELECT event_id FROM effects").all().length;
  return { store, database, apply, effects };
}

describe("completeIn()", () => {
  test("leaves neither when the transaction rolls back, and the next delivery runs", async () => {
    const { store, apply, effects } = setUp();
    let runs = 0;
    const handler = createHandler({ store }).on(buyer, (event, context) => {
      runs += 1;
      apply(event, context, runs === 1 ? broken : undefined);
    });
    expect(await handleAll(handler, "a")).toEqual(["failed"]);
    expect(effects()).toBe(0);
    expect(await handleAll(handler, "a")).toEqual(["done"]);
    expect(effects()).toBe(1);
  });

  test.each([
    ["with maxAttempts", 1],
    ["without", undefined],
  ])("makes an event done whose handler fails behind the commit, %s", async (_name, maxAttempts) => {
    const { store, apply, effects } = setUp();
    const onError = jest.fn();
    const letter = jest.fn();
    const onDeadLetter = maxAttempts === undefined ? undefined : letter;
    const handler = createHandler({ store, onError, onDeadLetter, maxAttempts }).on(
      buyer,
      async (event, context) => {
        apply(event, context);
        await Promise.resolve();
        throw broken;
      },
    );
    expect(await handleAll(handler, "a")).toEqual(["done"]);
    expect(await handleAll(handler, "a")).toEqual(["duplicate"]);
    expect(onError.mock.calls).toMatchObject([[{ outcome: "done", error: broken }]]);
    expect(letter).not.toHaveBeenCalled();
    expect(effects()).toBe(1);
  });

  test("gives up an event whose transactions roll back, with one dead letter", async () => {
    const { store, apply, effects } = setUp();
    const onDeadLetter = jest.fn();
    const handler = createHandler({ store, onDeadLetter, maxAttempts: 2 }).on(buyer, (event, context) =>
      apply(event, context, broken),
    );
    expect(await handleAll(handler, "a")).toEqual(["failed"]);
    expect(await handleAll(handler, "a")).toEqual(["dead-lettered"]);
    expect(await handleAll(handler, "a")).toEqual(["duplicate"]);
    expect(onDeadLetter).toHaveBeenCalledTimes(1);
    expect(effects()).toBe(0);
  });

  test.each<[string, "claim" | "release", number, string]>([
    ["cannot be given back", "release", 1, "busy"],
    // The first claim is the event's, the second that of its failure.
    ["cannot be claimed again", "claim", 3, "unavailable"],
  ])("keeps no dead letter when what rolled back %s", async (_name, method, failingCall, outcome) => {
    const { store, apply } = setUp();
    const onDeadLetter = jest.fn();
    const onError = jest.fn();
    const original = store[method].bind(store) as (...call: unknown[]) => never;
    let calls = 0;
    jest.spyOn(store, method).mockImplementation((...call: unknown[]) => {
      calls += 1;
      if (calls === failingCall) throw new Error("engine down");
      return original(...call);
    });
    const handler = createHandler({ store, onError, onDeadLetter, maxAttempts: 1 }).on(
      buyer,
      (event, context) => apply(event, context, broken),
    );
    expect(await handleAll(handler, "a")).toEqual([outcome]);
    expect(onError.mock.calls).toMatchObject([[{ outcome, error: broken }]]);
    expect(onDeadLetter).not.toHaveBeenCalled();
  });

  test("believes no success without a commit: the event waits for the end of its lease", async () => {
    const notices = collectNotices();
    const { store, database } = setUp();
    const handler = createHandler({ store }).on(buyer, (_event, { completeIn }) => {
      database.exec("BEGIN IMMEDIATE");
      void completeIn(database);
      database.exec("ROLLBACK");
    });
    expect(await handleAll(handler, "a")).toEqual(["in-doubt"]);
    expect(await handleAll(handler, "a")).toEqual(["busy"]);
    expect(notices.map(({ code }) => code)).toEqual(["commit-not-confirmed"]);
  });

  test("rolls back, and takes no attempt, when another attempt has the event", async () => {
    const { store, apply, effects } = setUp();
    const onDeadLetter = jest.fn();
    const onError = jest.fn();
    const key = "webhook-event:a";
    const handler = createHandler({ store, onDeadLetter, onError, maxAttempts: 1 }).on(
      buyer,
      async (event, context) => {
        const record = await store.read(key);
        await store.release(key, record?.token ?? "");
        await store.claim(key, { token: "other", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" });
        apply(event, context);
      },
    );
    expect(await handleAll(handler, "a")).toEqual(["busy"]);
    expect(onError.mock.calls).toMatchObject([[{ error: { code: "idempotency-lost" } }]]);
    expect(onDeadLetter).not.toHaveBeenCalled();
    expect(effects()).toBe(0);
    expect(store.read(key)).toMatchObject({ state: "running", token: "other" });
  });

  test("that the store does not answer is no failure of the event", async () => {
    const onDeadLetter = jest.fn();
    const store = {
      ...faultyStore(),
      completeIn: () => {
        throw new Error("engine down");
      },
    };
    const handler = createHandler({ store, onDeadLetter, maxAttempts: 1 }).on(
      buyer,
      (_event, { completeIn }) => completeIn({}),
    );
    expect(await handleAll(handler, "a")).toEqual(["unavailable"]);
    expect(onDeadLetter).not.toHaveBeenCalled();
  });

  test("is refused in onAny() while the handler of the type is yet to come, and taken when none comes", async () => {
    const { store, apply, effects } = setUp();
    const failures: unknown[] = [];
    const create = () =>
      createHandler({ store, onError: ({ error }) => void failures.push(error) }).onAny((event, context) =>
        apply(event, context),
      );
    const both = create().on(buyer, () => {});
    expect(await handleAll(both, "a")).toEqual(["failed"]);
    expect(failures).toMatchObject([{ message: expect.stringContaining("not in onAny()") }]);
    expect(effects()).toBe(0);
    expect(await handleAll(create(), "a")).toEqual(["done"]);
    expect(effects()).toBe(1);
  });
});
