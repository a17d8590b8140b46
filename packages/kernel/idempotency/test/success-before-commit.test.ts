// A success that comes before its completeIn(): the transaction rolls back, so nothing may call the key done unnoticed.
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { idempotencyKeys, type OwnedKey } from "@countersign/idempotency";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import {
  collectNotices,
  FakeTransaction,
  faultyStore,
  transactionalStore,
  type FaultyStore,
} from "@countersign/test-support/runs/faulty-store.ts";

const lost = expect.objectContaining({ status: 503, code: "idempotency-lost" });
const reason = "its completeIn() has not been committed";

let notices: ReturnType<typeof collectNotices>;
beforeEach(() => {
  notices = collectNotices();
});
afterEach(() => notices.stop());

async function own(store: FaultyStore): Promise<OwnedKey> {
  const keys = idempotencyKeys({ factory: "receiveFiles", store });
  const owned = await keys.acquire({ key: "k", fingerprint: "f", token: randomUUID() });
  if (owned.status !== "acquired") throw new Error("the key must be free");
  return owned;
}

async function completeIn(owned: OwnedKey): Promise<unknown> {
  try {
    await owned.completeIn(new FakeTransaction());
    return undefined;
  } catch (error) {
    return error;
  }
}

describe.each([{ synchronous: true }, { synchronous: false }])(
  "completeIn() behind the success of its own handler (synchronous: $synchronous)",
  ({ synchronous }) => {
    test("in the same call stack is lost, and the key is held with an alarm", async () => {
      const store = transactionalStore({ synchronous });
      const owned = await own(store);
      const completed = owned.complete();
      const thrown = completeIn(owned);
      expect(await completed).toMatchObject({ status: 503 });
      expect(await thrown).toEqual(lost);
      expect(store.inner.read("k")).toMatchObject({ state: "held", reason });
      expect(store.calls.complete).toBe(0);
      expect(notices.codes()).toEqual(["commit-not-confirmed"]);
    });

    test("while the answer is being kept is lost, and the key is held with an alarm", async () => {
      const store = transactionalStore({ synchronous });
      const owned = await own(store);
      let thrown: unknown;
      const completed = owned.complete(async () => {
        thrown = await completeIn(owned);
      });
      expect(await completed).toMatchObject({ status: 503 });
      expect(thrown).toEqual(lost);
      expect(store.inner.read("k")).toMatchObject({ state: "held", reason });
      expect(notices.codes()).toEqual(["commit-not-confirmed"]);
    });

    test("after the key is recorded is lost, with an alarm about what is done and unpaid", async () => {
      const store = transactionalStore({ synchronous });
      const owned = await own(store);
      expect(await owned.complete()).toBeUndefined();
      expect(await completeIn(owned)).toEqual(lost);
      expect(store.inner.read("k")).toMatchObject({ state: "done" });
      expect(notices.codes()).toEqual(["success-before-commit"]);
    });

    test("while the record is repeated is lost, and holds what the store has not recorded", async () => {
      const store = transactionalStore({ synchronous });
      const owned = await own(store);
      store.fail("complete", "throws before");
      expect(await owned.complete()).toMatchObject({ status: 503 });
      expect(await completeIn(owned)).toEqual(lost);
      await eventually(() => store.inner.read("k")?.state === "held");
      expect(store.inner.read("k")).toMatchObject({ reason });
      expect(notices.codes()).toEqual([
        "completion-delayed",
        "success-before-commit",
        "commit-not-confirmed",
      ]);
    });

    test.each([
      ["release", (owned: OwnedKey) => owned.release(), undefined],
      ["hold", (owned: OwnedKey) => owned.hold("the file was sent"), "held"],
    ] as const)("after %s() is lost in silence: nobody was told of a success", async (_name, end, state) => {
      const store = transactionalStore({ synchronous });
      const owned = await own(store);
      const ended = end(owned);
      expect(await completeIn(owned)).toEqual(lost);
      await ended;
      expect(await completeIn(owned)).toEqual(lost);
      expect(store.inner.read("k")?.state).toBe(state);
      expect(notices.codes()).toEqual([]);
    });
  },
);

test("on a store without transactions it is a TypeError, and the key is held all the same", async () => {
  const store = faultyStore();
  const owned = await own(store);
  const completed = owned.complete();
  expect(await completeIn(owned)).toBeInstanceOf(TypeError);
  expect(await completed).toMatchObject({ status: 503 });
  expect(store.inner.read("k")).toMatchObject({ state: "held", reason });
});
