// Adds up the JSON reports of jest and closes with one line; a skipped test or a report without tests fails.
import { readFileSync } from "node:fs";

let passed = 0;
let failed = 0;
let skipped = 0;
for (const file of process.argv.slice(2)) {
  const report = JSON.parse(readFileSync(file, "utf8"));
  passed += report.numPassedTests;
  failed += report.numFailedTests + report.numRuntimeErrorTestSuites;
  skipped += report.numPendingTests + report.numTodoTests;
  if (report.numTotalTests === 0) failed += 1;
}
if (skipped > 0) console.log(`${skipped} tests were skipped, which counts as failed here`);
failed += skipped;
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
