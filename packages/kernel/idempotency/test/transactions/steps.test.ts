import { describe, expect, test } from "@jest/globals";
import { answerOf, runSteps, runStepsNow, type Steps } from "../../src/transactions/steps.ts";

function* adding(answers: readonly unknown[], log: unknown[]): Steps<string> {
  for (const [index, answer] of answers.entries()) {
    try {
      log.push(yield* answerOf(answer));
    } catch (error) {
      log.push(error);
      if (index === answers.length - 1) throw error;
    }
  }
  return "end";
}

const boom = new Error("boom");
const rejected = (): Promise<never> => Promise.reject(boom);

describe("runSteps()", () => {
  test.each<[string, () => readonly unknown[], readonly unknown[]]>([
    ["no steps", () => [], []],
    ["plain answers and promises, in order", () => [1, Promise.resolve(2), 3], [1, 2, 3]],
    ["a rejection, which is thrown into them", () => [rejected(), 2], [boom, 2]],
  ])("runs %s", async (_case, answers, expected) => {
    const log: unknown[] = [];
    expect(await runSteps(adding(answers(), log))).toBe("end");
    expect(log).toEqual(expected);
  });

  test("rejects with what the steps throw on", async () => {
    await expect(runSteps(adding([1, rejected()], []))).rejects.toBe(boom);
  });
});

describe("runStepsNow()", () => {
  test("runs plain answers in one turn", () => {
    const log: unknown[] = [];
    expect(runStepsNow(adding([1, undefined, 3], log))).toBe("end");
    expect(log).toEqual([1, undefined, 3]);
  });

  test.each([
    ["resolves", Promise.resolve(1)],
    ["rejects, and ends no process", rejected()],
    // oxlint-disable-next-line unicorn/no-thenable -- what some libraries return
    ["is no Promise", { then: () => {} }],
  ])(
    "ends at a promise, which whoever opened the transaction gets to refuse, and that %s",
    (_case, promise) => {
      const log: unknown[] = [];
      expect(runStepsNow(adding([1, promise, 3], log))).toBe(promise);
      expect(log).toEqual([1]);
    },
  );
});
