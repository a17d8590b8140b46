// Adds up the JSON reports of jest and closes with one line; a skipped test or a report without tests fails. Tests that passed
// only when they ran again are named, and more than a few of them fail.
import { readFileSync } from "node:fs";

const toleratedRetries = 3;

let passed = 0;
let failed = 0;
let skipped = 0;
const retried = [];
for (const file of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(file, "utf8"));
  passed += report.numPassedTests;
  failed += report.numFailedTests + report.numRuntimeErrorTestSuites;
  skipped += report.numPendingTests + report.numTodoTests;
  if (report.numTotalTests === 0) failed += 1;
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  retried.push(...tests.filter(({ status, invocations }) => status === "passed" && invocations > 1));
}
for (const { fullName } of retried) console.log(`passed only when it ran again: ${fullName}`);
if (retried.length > toleratedRetries) {
  console.log(`${retried.length} tests had to run again, which counts as failed here`);
  passed -= retried.length;
  failed += retried.length;
}
if (skipped > 0) console.log(`${skipped} tests were skipped, which counts as failed here`);
failed += skipped;
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
