import { execFile } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type ContractCase, defineCases } from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";

const run = async () => {};
const cases: readonly ContractCase[] = [
  { name: "first rule", run },
  { name: "second rule", run, skipped: "without engine" },
];

function runner() {
  const defined: unknown[] = [];
  const record = (how: string) => (name: string, body: () => Promise<void>) =>
    defined.push([how, name, body]);
  return { defined, test: Object.assign(record("test"), { skip: record("skip") }) };
}

describe("defineCases", () => {
  test("defines a test for each case, and skips by name what cannot be checked", () => {
    const { defined, test: define } = runner();
    defineCases(cases, { test: define });
    expect(defined).toEqual([
      ["test", "first rule", run],
      ["skip", "second rule (without engine)", run],
    ]);
  });

  test.each([
    ["store contract", {}],
    ["my store", { title: "my store" }],
  ])("groups them as %s", (expected, options) => {
    const { defined, test: define } = runner();
    const titles: string[] = [];
    const group = (title: string, body: () => void) => {
      titles.push(title);
      expect(defined).toEqual([]);
      body();
    };
    defineCases(cases, { test: define, describe: group, ...options });
    expect(titles).toEqual([expected]);
    expect(defined).toHaveLength(2);
  });

  test("leaves a case longer than it can last", () => {
    const timeouts: (number | undefined)[] = [];
    const define = (_name: string, _body: unknown, timeoutMs?: number) => timeouts.push(timeoutMs);
    defineCases(cases, { test: Object.assign(define, { skip() {} }) });
    expect(timeouts[0]).toBeGreaterThan(60_000);
  });
});

async function nodeTest(env: Record<string, string>): Promise<{ code: unknown; output: string }> {
  const file = fileURLToPath(new URL("children/node-test.mjs", import.meta.url));
  const { PATH = "" } = process.env;
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ["--test", "--test-reporter=tap", file],
      { env: { PATH, ...env } },
      (error, stdout, stderr) => {
        resolve({ code: error?.code ?? 0, output: stdout + stderr });
      },
    );
  });
}

describe("node --test on a file of cases", () => {
  test("passes a right store and names what is skipped", async () => {
    const { code, output } = await nodeTest({});
    expect(output).toMatch(/# pass [1-9]\d/);
    expect(output).toMatch(/^# fail 0$/m);
    expect(output).toMatch(/^# skipped [1-9]/m);
    expect(output).toContain("(without another) # SKIP");
    expect(code).toBe(0);
  });

  test("fails a wrong store by the name of the rule", async () => {
    const { code, output } = await nodeTest({ STORE_IS_WRONG: "1" });
    expect(output).toMatch(/not ok \d+ - whatever steps come, each answer and each record is the reference/);
    expect(code).not.toBe(0);
  });
});
