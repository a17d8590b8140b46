// What a run of jest prints: a line for each package when the last of its test files has ended, each failure whole, and at a terminal
// how far the run is. jest's own summary follows.
import path from "node:path";
import process from "node:process";
import { notTested } from "../servers/server-binaries.mjs";
import { leftOutOfMysql } from "./engine-setup.mjs";
import { startedFiles } from "./sequencer.mjs";

// Nobody's own: while jest runs tests in its own process, they see other streams.
const write = process.stderr.write.bind(process.stderr);

// oxlint-disable-next-line import/no-default-export -- jest calls it
export default class PackageReporter {
  #packages = new Map();
  #isVerbose;
  #isTerminal = process.stderr.isTTY && !process.env["CI"];
  #startedAtMs = performance.now();
  #redrawnAtMs = 0;
  #files = { ended: 0, all: 0 };
  #passed = 0;
  #leftOut = new Set();

  constructor({ rootDir, verbose }) {
    this.rootDir = rootDir;
    this.#isVerbose = verbose === true;
  }

  onRunStart() {
    this.#startedAtMs = performance.now();
    const files = startedFiles();
    this.#files = { ended: 0, all: files.length };
    for (const file of files) {
      const name = this.#packageOf(file);
      const row = this.#packages.get(name) ?? { files: 0, passed: 0, failed: 0, leftOut: 0, ms: 0 };
      row.files += 1;
      this.#packages.set(name, row);
    }
  }

  onTestCaseResult(_test, { status }) {
    if (status === "passed") this.#passed += 1;
    this.#showProgress();
  }

  onTestFileResult(test, result) {
    const row = this.#packages.get(this.#packageOf(test.path));
    row.files -= 1;
    row.passed += result.numPassingTests;
    row.failed += result.numFailingTests + (result.testExecError ? 1 : 0);
    row.leftOut += result.numPendingTests + result.numTodoTests;
    row.ms += result.perfStats.runtime;
    this.#files.ended += 1;
    // test/support/runs/written.mjs takes everything else that a test file writes.
    for (const { message } of result.console ?? []) this.#leftOut.add(message);
    const file = path.relative(this.rootDir, test.path);
    if (this.#isVerbose)
      this.#print(result.testResults.map(({ status, fullName }) => `  ${status}: ${fullName}`));
    if (result.failureMessage) this.#print([`FAIL ${file}`, result.failureMessage]);
    if (row.files === 0) this.#print([lineOf(this.#packageOf(test.path), row)]);
    this.#showProgress(true);
  }

  onRunComplete() {
    this.#clear();
    const rows = [...this.#packages.values()];
    const sum = { passed: 0, failed: 0, leftOut: 0, ms: 0 };
    for (const row of rows) for (const key of Object.keys(sum)) sum[key] += row[key];
    if (rows.length > 1) this.#print([lineOf(`${rows.length} packages and folders`, sum)]);
    const mysql = leftOutOfMysql();
    if (mysql !== undefined) this.#leftOut.add(mysql);
    if (this.#leftOut.size > 0) write(notTested([...this.#leftOut]));
  }

  getLastError() {
    return undefined;
  }

  /** The folder with the tests of one package, example or subject. */
  #packageOf(file) {
    const parts = path.relative(this.rootDir, file).split(path.sep);
    const end = parts[0] === "packages" ? 3 : 2;
    return parts.length > end ? parts.slice(0, end).join("/") : parts[0];
  }

  #print(lines) {
    this.#clear();
    write(`${lines.join("\n")}\n`);
  }

  #showProgress(isDue = false) {
    const nowMs = performance.now();
    if (!this.#isTerminal || (!isDue && nowMs - this.#redrawnAtMs < 200)) return;
    this.#redrawnAtMs = nowMs;
    const seconds = Math.round((nowMs - this.#startedAtMs) / 1000);
    const { ended, all } = this.#files;
    const text = `${ended} of ${all} files, ${this.#passed} tests passed, ${seconds} s`;
    write(`\r\u001b[K${text.slice(0, (process.stderr.columns || 80) - 1)}`);
  }

  #clear() {
    if (this.#isTerminal) write("\r\u001b[K");
  }
}

function lineOf(name, { passed, failed, leftOut, ms }) {
  const counts = [
    `${String(passed).padStart(6)} passed`,
    ...(failed > 0 ? [`${failed} FAILED`] : []),
    ...(leftOut > 0 ? [`${leftOut} LEFT OUT`] : []),
  ];
  return `${name.padEnd(44)} ${`${(ms / 1000).toFixed(1)} s`.padStart(9)} ${counts.join(", ")}`;
}
