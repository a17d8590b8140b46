import { allCodes } from "@countersign/cli/codes";
import { describe, expect, test } from "@jest/globals";
import { expectOneLine, run } from "./cli-bench.ts";

describe("countersign code", () => {
  test("says cause and remedy of every code within 80 columns, without an address", async () => {
    const ends = await Promise.all([...allCodes().keys()].map((code) => run(["code", code])));
    for (const { code, out, err } of ends) {
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toMatch(/^\S+ {2}(?:status \d{3}|notice|no answer of its own); .+\n\nCause\n {2}\S/);
      expect(out.slice(out.indexOf("\nCause"))).not.toMatch(/^.{81}|\]\(/m);
    }
    expect(ends.length).toBeGreaterThan(100);
  });

  test("says with --json what the page of codes says", async () => {
    const { out } = await run("code in-flight --json");
    expect(JSON.parse(out)).toEqual({ code: "in-flight", ...allCodes().get("in-flight") });
    expect(allCodes().get("in-flight")).toMatchObject({ kind: "status 503" });
  });

  test.each([
    ["key-unknwn", /^error: key-unknwn: no code of these packages; did you mean .*key-unknown/],
    ["__proto__", /^error: __proto__: no code/],
    ["\u001B[2J", /^error: "\\u001b\[2J": no code/],
  ])("%p is no code, and ends with 1", async (code, line) => {
    expectOneLine(await run(["code", code]), 1, line);
  });
});
