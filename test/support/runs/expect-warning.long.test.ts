import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { testFolder } from "./after-test.ts";

const runs = path.dirname(fileURLToPath(import.meta.url));
const helper = path.join(runs, "expect-warning.ts");
const binaries = path.join(runs, "../servers/server-binaries.mjs");
const require = createRequire(import.meta.url);

interface Result {
  readonly failed: boolean;
  /** What the run prints. */
  readonly output: string;
  /** The messages of each test, by its title; none if it has passed. */
  readonly messages: Readonly<Record<string, string>>;
}

/** Runs test files in the environment and with the reporters of this project. They have jest's globals. */
async function runFiles(files: Readonly<Record<string, string>>): Promise<Result> {
  const folder = testFolder();
  for (const [name, text] of Object.entries(files)) {
    const imports = `import { expectWarning } from ${JSON.stringify(helper)};\nimport { spawn } from "node:child_process";\nimport { once } from "node:events";\n`;
    writeFileSync(path.join(folder, name), imports + text);
  }
  const config = {
    rootDir: folder,
    testEnvironment: path.join(runs, "environment.mjs"),
    testSequencer: path.join(runs, "sequencer.mjs"),
    reporters: [path.join(runs, "package-reporter.mjs"), "summary"],
    testMatch: ["**/*.test.ts"],
    extensionsToTreatAsEsm: [".ts"],
    transform: {
      "^.+\\.ts$": [
        require.resolve("@swc/jest"),
        { swcrc: false, jsc: { target: "es2022", parser: { syntax: "typescript" } } },
      ],
    },
    verbose: false,
  };
  writeFileSync(path.join(folder, "jest.json"), JSON.stringify(config));
  writeFileSync(path.join(folder, "package.json"), "{}");
  const report = path.join(folder, "report.json");
  const jest = path.join(path.dirname(require.resolve("jest/package.json")), "bin/jest.js");
  const args = ["--experimental-vm-modules", "--disable-warning=ExperimentalWarning", jest];
  args.push("--config", path.join(folder, "jest.json"), "--json", "--outputFile", report);
  const { CI: _, ...env } = process.env;
  let failed = false;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: folder, env }).catch(
    (error: { stdout: string; stderr: string }) => {
      failed = true;
      return error;
    },
  );
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as {
    testResults: { message: string; assertionResults: { title: string; failureMessages: string[] }[] }[];
  };
  const messages = Object.fromEntries(
    testResults.flatMap(({ assertionResults }) =>
      assertionResults.map(({ title, failureMessages }) => [title, failureMessages.join("\n")]),
    ),
  );
  return { failed, output: stdout + stderr, messages };
}

test("fails a test that writes what it does not expect, and says how to expect it", async () => {
  const { failed, output, messages } = await runFiles({
    "a.test.ts": `
      test("warns", () => void process.emitWarning("low on paper", { code: "paper" }));
      test("writes", () => console.error("out of paper"));
      test("warns late", async () => {
        process.nextTick(() => process.emitWarning("late"));
      });
      test("starts a child", async () => {
        const child = spawn(process.execPath, ["-e", "console.error('no printer')"], { stdio: "inherit" });
        await once(child, "close");
      });
      test("is quiet", () => {});
    `,
  });
  expect(failed).toBe(true);
  expect(messages["warns"]).toContain(
    "This test writes what it does not expect:\n  warning: [paper] Warning: low on paper",
  );
  expect(messages["warns"]).toContain("expectWarning(/a part of its text/)");
  expect(messages["writes"]).toContain("stderr: out of paper");
  expect(messages["warns late"]).toContain("Warning: late");
  expect(messages["starts a child"]).toContain("stderr of a child process: no printer");
  expect(messages["is quiet"]).toBe("");
  expect(output).toContain("FAIL a.test.ts");
  expect(output).toContain("Tests:       4 failed, 1 passed, 5 total");
});

test("passes a test whose expected warnings come as often as it says, and fails one whose do not", async () => {
  const { messages } = await runFiles({
    "a.test.ts": `
      test("one", () => (expectWarning(/paper/), process.emitWarning("low on paper")));
      test("two", () => (expectWarning(/paper/, 2), process.emitWarning("paper"), console.warn("paper")));
      test("several", () => (expectWarning(/paper/, Infinity), console.warn("paper\\npaper\\npaper")));
      test("none", () => expectWarning(/paper/));
      test("too many", () => (expectWarning(/paper/), console.warn("paper\\npaper")));
      test("another", () => (expectWarning(/paper/), console.warn("ink")));
    `,
  });
  expect(messages).toMatchObject({ one: "", two: "", several: "" });
  expect(messages["none"]).toContain("expects 1 warning like /paper/, but there were 0");
  expect(messages["too many"]).toContain("expects 1 warning like /paper/, but there were 2");
  expect(messages["another"]).toContain("stderr: ink");
});

test("fails a file that writes outside of its tests", async () => {
  const { failed, output, messages } = await runFiles({
    "a.test.ts": `console.log("loaded");\ntest("is quiet", () => {});\nafterAll(() => console.error("done"));`,
  });
  expect(failed).toBe(true);
  expect(messages).toEqual({ "is quiet": "" });
  expect(output).toContain("stdout: loaded");
  expect(output).toContain("stderr: done");
});

test("prints a line for each package, what is left out, and jest's sum", async () => {
  const { failed, output } = await runFiles({
    "a.test.ts": `import { reportLeftOut } from ${JSON.stringify(binaries)};
      reportLeftOut("the press is missing");
      test("is quiet", () => {});
      test.skip("is left out", () => {});`,
    "b.test.ts": `test("is quiet too", () => {});`,
  });
  expect(failed).toBe(false);
  expect(output).toMatch(/^a\.test\.ts +[\d.]+ s +1 passed, 1 LEFT OUT$/m);
  expect(output).toMatch(/^2 packages and folders +[\d.]+ s +2 passed, 1 LEFT OUT$/m);
  expect(output).toContain("\nNOT TESTED: the press is missing\n");
  expect(output).toContain("\nTests:       1 skipped, 2 passed, 3 total\n");
  expect(output.split("\n").length).toBeLessThan(20);
});
