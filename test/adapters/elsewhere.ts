// The table through the fetch adapter on whatever runs TypeScript: Bun, Deno, Node 24. Without a test runner, which is each one's own.
import { deepStrictEqual } from "node:assert/strict";
import process from "node:process";
import { fetchAdapter } from "./fetch-adapter.ts";
import { hostileRows } from "./hostile-rows.ts";
import { run } from "./run.ts";
import { table } from "./table.ts";

// Timers of the packages keep no process alive, and here no server does.
const alive = setInterval(() => undefined, 60_000);
let passed = 0;
const failures: string[] = [];
for (const row of [...table, ...hostileRows]) {
  try {
    const { seen, demanded } = await run(fetchAdapter, row);
    deepStrictEqual(seen, demanded);
    passed += 1;
  } catch (error) {
    failures.push(`${row.title}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }
}
clearInterval(alive);
for (const failure of failures) process.stdout.write(`FAILED ${failure}\n`);
process.stdout.write(`${passed} passed, ${failures.length} failed\n`);
process.exitCode = failures.length === 0 && passed > 0 ? 0 : 1;
