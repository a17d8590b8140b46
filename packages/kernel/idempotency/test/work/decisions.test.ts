import {
  decideLane,
  discardedTask,
  doneTask,
  failedTask,
  lapsedTask,
  returnedTask,
} from "@countersign/idempotency/work/store";
import { describe, expect, test } from "@jest/globals";

const nowUs = 1_000_000;
const seen = { attempts: 3, failures: "[]", nowMs: 5 };
const failure = (reason: string) => JSON.stringify([{ atMs: 5, attempt: 3, reason }]);

describe("decideLane()", () => {
  const lane = { leasedUntilUs: undefined, headDueUs: nowUs };

  test("takes the oldest task from the moment in which it is due", () => {
    expect(decideLane(lane, nowUs)).toEqual({ isLapsed: false, next: "take" });
    expect(decideLane({ ...lane, headDueUs: nowUs + 1 }, nowUs)).toEqual({
      isLapsed: false,
      next: { dueUs: nowUs + 1 },
    });
  });

  test("removes a lane without an open task", () => {
    expect(decideLane({ ...lane, headDueUs: undefined }, nowUs)).toEqual({ isLapsed: false, next: "remove" });
  });

  test("leaves a lane to its owner until the lease has ended, whatever is due", () => {
    expect(decideLane({ ...lane, leasedUntilUs: nowUs + 1 }, nowUs)).toEqual({
      isLapsed: false,
      next: { dueUs: nowUs + 1 },
    });
    expect(decideLane({ ...lane, leasedUntilUs: nowUs }, nowUs)).toEqual({ isLapsed: true, next: "take" });
  });

  test("lets the oldest task of a silent owner's lane wait for its time", () => {
    expect(decideLane({ leasedUntilUs: 1, headDueUs: nowUs + 7 }, nowUs)).toEqual({
      isLapsed: true,
      next: { dueUs: nowUs + 7 },
    });
  });
});

describe("what becomes of a task", () => {
  test("whose attempt has failed: it waits for the next one, or is dead without one", () => {
    const reason = "503";
    expect(failedTask(seen, { reason, retryInMs: 0 })).toEqual({
      state: "open",
      failures: failure(reason),
      dueInMs: 0,
    });
    expect(failedTask(seen, { reason, retryInMs: undefined })).toEqual({
      state: "dead",
      failures: failure(reason),
    });
  });

  test("that is given back: the attempt does not count, and no failure is noted", () => {
    expect(returnedTask(seen, 9)).toEqual({ state: "open", attempts: 2, dueInMs: 9 });
  });

  test("whose owner fell silent: it stays open and due, and the attempt counts as failed", () => {
    expect(lapsedTask(seen)).toEqual({ state: "open", failures: failure("lease-expired") });
  });

  test("that an operator discards: it is done, with the decision as its last failure", () => {
    const discarded = { state: "done", failures: failure("discarded by anna: no use") };
    expect(discardedTask(seen, { by: "anna", note: "no use" })).toEqual(discarded);
  });

  test("whose effect was committed: it is done", () => {
    expect(doneTask).toEqual({ state: "done" });
  });
});
