import { afterEach, beforeEach, expect, jest } from "@jest/globals";

/** For stores whose server never answers a question: the step is refused after the thirty seconds that it may take, by a clock of jest's. */
export function refusesUnanswered(): (step: () => Promise<unknown>) => Promise<void> {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());
  return async (step) => {
    const late = expect(step()).rejects.toThrow("did not answer within 30000 ms");
    await jest.advanceTimersByTimeAsync(30_000);
    await late;
  };
}
