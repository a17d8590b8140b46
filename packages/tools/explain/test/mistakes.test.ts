import { describe, expect, test } from "@jest/globals";
import { explainSignature } from "../dist/index.js";
import { mistakes } from "./mistakes.ts";
import { mistaken, verifier } from "./signed-with-mistake.ts";

describe("explainSignature of the mistakes of signers", () => {
  test.each(mistakes)("$mistake", async ({ made, options, what, says }) => {
    const explained = await explainSignature(mistaken(made), { ...verifier, ...options });
    expect(explained).toMatchObject({ what, sentence: says });
    expect(explained.attempts).toBeLessThanOrEqual(2000);
  });

  test("names all but the rows that say so", () => {
    const named = mistakes.filter(({ isNamed = true }) => isNamed);
    expect(named.every(({ what }) => what !== "signature-unexplained")).toBe(true);
    expect(named.length).toBeGreaterThanOrEqual(57);
    expect(mistakes.length - named.length).toBe(3);
    expect(new Set(mistakes.map(({ mistake }) => mistake)).size).toBe(mistakes.length);
  });
});
