import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, jest, test } from "@jest/globals";
import { Retries } from "../src/attempt-store.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";

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
    await eventually(() => abandoned > 0);
    now.mockRestore();
    expect({ calls, abandoned }).toEqual({ calls: 1, abandoned: 1 });
  });

  test("has two thousand places for claims, each free again when its claim was answered or given back", async () => {
    const retries = new Retries();
    let finish = false;
    let calls = 0;
    for (let index = 0; index < 2_000; index += 1) expect(retries.reserveClaim()).toBe(true);
    expect(retries.reserveClaim()).toBe(false);
    retries.claimAnswered();
    expect(retries.reserveClaim()).toBe(true);
    for (let index = 0; index < 3; index += 1) {
      retries.giveBackClaim(10_000, () => {
        calls += 1;
        return finish;
      });
    }
    expect({ calls, claims: retries.claims }).toEqual({ calls: 3, claims: 2_000 });
    expect(retries.reserveClaim()).toBe(false);
    finish = true;
    await eventually(() => retries.claims === 1_997);
    expect(retries.reserveClaim()).toBe(true);
  });

  test("hurries: what waits is tried at once, what is being tried is not tried twice", async () => {
    const retries = new Retries();
    let calls = 0;
    let answer: (done: boolean) => void = () => {};
    retries.repeat(
      () => {
        calls += 1;
        return new Promise((resolve) => (answer = resolve));
      },
      () => {},
    );
    expect(calls).toBe(0);
    retries.hurry();
    retries.hurry();
    expect(calls).toBe(1);
    answer(false);
    await nextTurn();
    retries.hurry();
    expect(calls).toBe(2);
    answer(true);
    await nextTurn();
    retries.hurry();
    expect(calls).toBe(2);
  });
});
