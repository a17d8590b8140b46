import { describe, expect, jest, test } from "@jest/globals";
import { Retries } from "../src/retries.ts";
import { eventually, sleep } from "./kit.ts";

describe("Retries", () => {
  test("repeats a step that throws, rejects or is not done, until it is", async () => {
    const answers = [
      () => {
        throw new Error("down");
      },
      () => Promise.reject(new Error("down")),
      () => Promise.resolve(false),
      () => true,
    ];
    let calls = 0;
    let abandoned = false;
    new Retries().repeat(
      () => {
        calls += 1;
        return answers[calls - 1]?.() ?? true;
      },
      () => {
        abandoned = true;
      },
    );
    expect(calls).toBe(0);
    await eventually(() => calls === 4);
    expect(abandoned).toBe(false);
  });

  test("gives up after an hour", async () => {
    const startedAt = performance.now();
    let calls = 0;
    let abandoned = 0;
    new Retries().repeat(
      () => {
        calls += 1;
        return false;
      },
      () => {
        abandoned += 1;
      },
    );
    const now = jest.spyOn(performance, "now").mockReturnValue(startedAt + 3_600_001);
    await sleep(250);
    now.mockRestore();
    expect({ calls, abandoned }).toEqual({ calls: 1, abandoned: 1 });
  });

  test("tries an optional step at once, and takes on a thousand of them at a time", async () => {
    const retries = new Retries();
    let finish = false;
    let calls = 0;
    const step = (): boolean => {
      calls += 1;
      return finish;
    };
    for (let index = 0; index < 1_200; index += 1) retries.tryToRepeat(step);
    expect(calls).toBe(1_000);
    finish = true;
    await eventually(() => calls === 2_000);
    calls = 0;
    for (let index = 0; index < 1_200; index += 1) retries.tryToRepeat(step);
    await sleep(0);
    expect(calls).toBeGreaterThanOrEqual(1_000);
  });
});
