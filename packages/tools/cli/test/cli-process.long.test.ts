import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { CliBench } from "./cli-bench.ts";

const bench = new CliBench();
beforeAll(() => bench.open());
afterAll(() => bench.close());

describe("countersign as a process", () => {
  test.each<[string, readonly string[], number]>([
    ["a good payout", [], 0],
    ["a tampered body", ["--tamper", "body"], 0],
    ["a tampered digest", ["--tamper", "digest"], 0],
    ["a tampered signature", ["--tamper", "signature"], 0],
    ["a tampered path", ["--tamper", "path"], 0],
    ["an expired signature", ["--expired"], 0],
    ["a future signature", ["--future"], 0],
    ["a replay", ["--replay"], 0],
    ["a duplicate", ["--duplicate"], 0],
    ["an unexpected acknowledgement", ["--expect", "401"], 1],
    ["an unknown keyid", ["--keyid", "nobody"], 1],
    ["an unknown keyid that is expected", ["--keyid", "nobody", "--expect", "401"], 0],
    ["two variants", ["--replay", "--expired"], 2],
    ["a closed port", ["--url", "http://127.0.0.1:1/pay"], 3],
  ])("%s ends with exit code", async (_name, args, code) => {
    const { code: got, err } = await bench.spawned(bench.payout(...args));
    expect(got).toBe(code);
    expect(err.split("\n").filter(Boolean)).toHaveLength(code === 2 ? 1 : 0);
  });

  test("--json prints one document and nothing else, without the private key", async () => {
    const { code, out, err } = await bench.spawned(bench.payout("--duplicate", "--json"), {
      FORCE_COLOR: "1",
    });
    const report = JSON.parse(out) as Record<string, unknown>;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(report).toMatchObject({
      variant: "duplicate",
      asExpected: true,
      reached: true,
      outcomes: [
        { name: "first", answer: { status: 200 }, error: null, expected: ["2xx"], asExpected: true },
        {
          name: "duplicate",
          answer: { status: 409, meaning: expect.stringMatching(/already processed/) },
          signature: { keyid: "test" },
        },
      ],
    });
    expect(out).not.toContain("PRIVATE KEY");
  });

  test("keygen writes where it is told and prints no key", async () => {
    const { code, out } = await bench.spawned(["keygen", "--out", "made", "--keyid", "k1", "--json"]);
    const { privateKeyFile } = JSON.parse(out) as { privateKeyFile: string };
    const pem = readFileSync(join(bench.directory, privateKeyFile), "utf8");
    expect(code).toBe(0);
    expect(out).not.toContain(pem.split("\n")[1]);
  });

  test("prints no colours into a pipe", async () => {
    expect((await bench.spawned(bench.payout())).out).not.toContain("\u001B");
  });
});
