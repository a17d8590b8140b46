// npm run mutants: breaks the source in each way that test/mutants/mutants.json lists, one at a time, and expects a test to fail.
// --only <text>: mutants whose name or file holds it. --jobs <n>: so many at a time. --find: searches for a test where the one that is
// listed does not fail, and writes the list. See test/mutants/README.md.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { WorkspaceCopy } from "../test/mutants/workspace-copy.mjs";
import { ensureReady, root, runScript } from "./setup.mjs";

const listFile = path.join(root, "test/mutants/mutants.json");
const testTimeoutMs = 10_000;
const runTimeoutMs = 90_000;
const baselineTimeoutMs = 1_800_000;
const noSuchTest = "no such test";
const running = new Set();

runScript(async () => {
  const { values } = parseArgs({
    options: { only: { type: "string" }, jobs: { type: "string", default: "1" }, find: { type: "boolean" } },
  });
  const jobs = Number(values.jobs);
  if (!Number.isInteger(jobs) || jobs < 1) throw new TypeError("--jobs must be a number above 0");
  ensureReady();
  const list = JSON.parse(readFileSync(listFile, "utf8"));
  assertDistinct(list);
  const chosen = list.filter(
    ({ name, file }) => values.only === undefined || `${name} ${file}`.includes(values.only),
  );
  const copies = Array.from({ length: Math.min(jobs, chosen.length) }, () => new WorkspaceCopy(root));
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => {
      for (const child of running) process.kill(-child.pid, "SIGKILL");
      for (const copy of copies) copy.remove();
      process.exit(1);
    });
  }
  try {
    await assertSoundTests(copies[0], chosen);
    const lost = await tryAll(copies, chosen, values.find === true);
    if (values.find === true) writeList(list);
    console.log(`${chosen.length - lost.length} of ${chosen.length} mutants are found`);
    if (lost.length > 0) console.log(`not found:\n${lost.map((line) => `  ${line}`).join("\n")}`);
    process.exitCode = lost.length > 0 ? 1 : 0;
  } finally {
    for (const copy of copies) copy.remove();
  }
});

function assertDistinct(list) {
  const names = list.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`mutants.json has two mutants named "${twice}"`);
}

/** The tests that are listed for a mutant. */
function killersOf({ foundBy, alsoFoundBy = [] }) {
  return foundBy === undefined ? alsoFoundBy : [foundBy, ...alsoFoundBy];
}

/** A test that fails without a mutant finds nothing. */
async function assertSoundTests(copy, mutants) {
  const named = mutants.flatMap(killersOf).filter(({ test, title }) => title !== undefined && copy.has(test));
  if (named.length === 0) return;
  const files = [...new Set(named.map(({ test }) => test))];
  const titles = [...new Set(named.map(({ title }) => title))];
  const { failed, fault } = await runTests(copy, files, { titles, timeoutMs: baselineTimeoutMs });
  if (fault === noSuchTest) return;
  if (fault !== undefined) throw new Error(`the tests cannot be run without a mutant: ${fault}`);
  if (failed.length > 0) {
    throw new Error(
      `without a mutant these fail already:\n${failed.map(({ test, title }) => `  ${test}: ${title}`).join("\n")}`,
    );
  }
  console.log(`${titles.length} tests in ${files.length} files pass without a mutant`);
}

/** One line for each mutant that no test has found. */
async function tryAll(copies, mutants, finds) {
  const waiting = mutants.entries();
  const lost = [];
  const work = async (copy) => {
    for (const [index, mutant] of waiting) {
      const startedAtMs = performance.now();
      // oxlint-disable-next-line no-await-in-loop -- one mutant after the other in each copy
      const { by, note } = await tryOne(copy, mutant, finds);
      const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
      const place = `[${index + 1}/${mutants.length}, ${seconds} s] ${mutant.name}`;
      console.log(by === undefined ? `${place}: NOT FOUND, ${note}` : `${place}: ${by.test}${note}`);
      if (by === undefined) lost.push(`${mutant.name} (${mutant.file}): ${note}`);
    }
  };
  await Promise.all(copies.map(work));
  return lost;
}

async function tryOne(copy, mutant, finds) {
  let restore;
  try {
    restore = copy.mutate(mutant);
  } catch (error) {
    return { note: error.message };
  }
  try {
    const checked = await checkKillers(copy, mutant);
    return checked.by === undefined && finds ? await findKiller(copy, mutant) : checked;
  } finally {
    restore();
  }
}

/** Which of the tests that are listed finds the mutant first. */
async function checkKillers(copy, mutant) {
  const notes = [];
  for (const { test, title } of killersOf(mutant)) {
    if (title === undefined) continue;
    // oxlint-disable-next-line no-await-in-loop -- the first that finds it ends the search
    const { failed, fault } = await runTests(copy, [test], { titles: [title] });
    if (failed.length > 0) return { by: { test, title }, note: notes.map((note) => ` (${note})`).join("") };
    notes.push(`${test}, "${title}": ${fault ?? "passes"}`);
  }
  return { note: notes.join("; ") || "no test is listed" };
}

/** Searches the files that are listed, then the tests of the package, and puts the first test that fails in the place of the listed ones. */
async function findKiller(copy, mutant) {
  const listed = killersOf(mutant).map(({ test }) => test);
  const files = new Set([...listed.filter((test) => copy.has(test)), ...packageTests(copy, mutant.file)]);
  for (const file of files) {
    // oxlint-disable-next-line no-await-in-loop -- the first that fails ends the search
    const [foundBy] = (await runTests(copy, [file])).failed;
    if (foundBy === undefined) continue;
    delete mutant.alsoFoundBy;
    return { by: Object.assign(mutant, { foundBy }).foundBy, note: ` "${foundBy.title}"` };
  }
  return { note: `none of ${files.size} files finds it` };
}

function packageTests(copy, file) {
  const folder = path.join(file.slice(0, file.indexOf("/src/")), "test");
  if (!copy.has(folder)) return [];
  return readdirSync(path.join(copy.root, folder), { recursive: true })
    .filter((name) => name.endsWith(".test.ts") && !name.endsWith(".long.test.ts"))
    .map((name) => path.join(folder, name));
}

/**
 * Runs test files, or the tests of these titles in them. `failed` has the tests that failed; `fault` says why there is no verdict, such
 * as a file that cannot be loaded.
 */
async function runTests(copy, files, { titles, timeoutMs = runTimeoutMs } = {}) {
  const missing = files.filter((file) => !copy.has(file));
  if (missing.length > 0) return { failed: [], fault: "is not there" };
  const report = path.join(copy.root, "node_modules/.cache/mutants.json");
  mkdirSync(path.dirname(report), { recursive: true });
  writeFileSync(report, "{}");
  const chosen = titles === undefined ? [] : [`--testNamePattern=^(?:${titles.map(escaped).join("|")})$`];
  const ended = await runJest(copy, ["--json", `--outputFile=${report}`, ...chosen, ...files], timeoutMs);
  if (!ended) return { failed: [], fault: `timed out after ${timeoutMs / 1000} s` };
  const { testResults = [], numPassedTests = 0 } = JSON.parse(readFileSync(report, "utf8"));
  const failed = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === "failed")
      .map(({ fullName }) => ({ test: path.relative(copy.root, name), title: fullName })),
  );
  const broken = testResults.find(
    ({ status, assertionResults }) => status === "failed" && assertionResults.length === 0,
  );
  const fault = broken?.message ?? (numPassedTests === 0 ? noSuchTest : undefined);
  return { failed, fault: failed.length > 0 ? undefined : fault?.trim().split("\n").slice(0, 3).join(" ") };
}

function escaped(text) {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

/** Whether jest came to its end in time. */
function runJest({ root: rootDir }, args, timeoutMs) {
  const jest = path.join(root, "node_modules/jest/bin/jest.js");
  const isLong = args.some((file) => file.endsWith(".long.test.ts"));
  const config = path.join(rootDir, isLong ? "jest.long.config.mjs" : "jest.config.mjs");
  const cache = path.join(rootDir, "node_modules/.cache/jest");
  const options = ["--config", config, "--cacheDirectory", cache, "--maxWorkers=1", "--runTestsByPath"];
  const child = spawn(
    process.execPath,
    [
      "--experimental-vm-modules",
      "--no-warnings",
      jest,
      ...options,
      `--testTimeout=${testTimeoutMs}`,
      ...args,
    ],
    { cwd: rootDir, stdio: "ignore", detached: true },
  );
  running.add(child);
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      // With the processes that its tests have started.
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    }, timeoutMs);
    child.on("error", reject);
    child.on("exit", () => {
      clearTimeout(timer);
      running.delete(child);
      resolve(!isLate);
    });
  });
}

/** One mutant a line, so that a change to one is a change to one line. */
function writeList(list) {
  writeFileSync(listFile, `[\n${list.map((mutant) => JSON.stringify(mutant)).join(",\n")}\n]\n`);
}
