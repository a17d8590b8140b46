import { withDeadline } from "@countersign/core";
import { isPromiseLike } from "@countersign/core/internal";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";

const late = (): Error => new Error("too late");

describe("withDeadline", () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  test("resolves as the work does and leaves no timer", async () => {
    await expect(withDeadline(Promise.resolve("done"), 1000, late)).resolves.toBe("done");
    await Promise.resolve();
    expect(jest.getTimerCount()).toBe(0);
  });

  test("rejects as the work does and leaves no timer", async () => {
    await expect(withDeadline(Promise.reject(new Error("broken")), 1000, late)).rejects.toThrow("broken");
    await Promise.resolve();
    expect(jest.getTimerCount()).toBe(0);
  });

  test("rejects exactly at the deadline", async () => {
    const settled = jest.fn();
    const work = withDeadline(new Promise<never>(() => undefined), 1000, late);
    work.catch(settled);
    await jest.advanceTimersByTimeAsync(999);
    expect(settled).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1);
    expect(settled).toHaveBeenCalledWith(new Error("too late"));
  });

  test.each([
    ["succeeds", () => undefined],
    [
      "fails",
      (): never => {
        throw new Error("broken");
      },
    ],
  ])("stays with the deadline when the work %s afterwards", async (_name, end) => {
    const work = new Promise<void>((resolve) => {
      setTimeout(resolve, 2000);
    }).then(end);
    const outcome = withDeadline(work, 1000, late).catch((error: unknown) => error);
    await jest.advanceTimersByTimeAsync(3000);
    await expect(outcome).resolves.toEqual(new Error("too late"));
  });
});

describe("isPromiseLike", () => {
  test.each<[string, unknown, boolean]>([
    ["a promise", Promise.resolve(), true],
    // oxlint-disable-next-line unicorn/no-thenable -- what the test is about
    ["a thenable", { then: () => undefined }, true],
    // oxlint-disable-next-line unicorn/no-thenable -- what the test is about
    ["a function with a then", Object.assign(() => undefined, { then: () => undefined }), true],
    ["a function", () => undefined, false],
    // oxlint-disable-next-line unicorn/no-thenable -- what the test is about
    ["an object whose then is data", { then: "later" }, false],
    ["a record", { value: 1 }, false],
    ["a string", "then", false],
    ["null", null, false],
    ["undefined", undefined, false],
  ])("knows %s", (_name, value, expected) => {
    expect(isPromiseLike(value)).toBe(expected);
  });
});
