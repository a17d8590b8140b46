import { describe, expect, test } from "@jest/globals";
import { explainSignature } from "../dist/index.js";
import { explainedAs } from "./explained-as.ts";
import { mistakes } from "./mistakes.ts";
import { mistaken, verifier } from "./signed-with-mistake.ts";

const rows = explainedAs("mistakes.txt");

describe("explainSignature of the mistakes of signers", () => {
  test.each(rows)("$mistake", async ({ mistake, what, says }) => {
    const made = mistakes[mistake];
    const explained = await explainSignature(mistaken(made), { ...verifier, ...made?.options });
    expect(explained).toMatchObject({ what, sentence: says });
    expect(explained.attempts).toBeLessThanOrEqual(2000);
  });

  test("names all but three", () => {
    expect(rows.map(({ mistake }) => mistake)).toEqual(Object.keys(mistakes));
    expect(rows.filter(({ what }) => what === "signature-unexplained").map(({ mistake }) => mistake)).toEqual(
      ["a private key that nobody knows", "a base in words of its own", "three things at once"],
    );
    expect(rows.length).toBe(128);
  });
});
