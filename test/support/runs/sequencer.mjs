// In what order jest starts the test files: the longest first, so that no worker is left alone with one at the end. With
// --randomize the seed of its tests decides the rest.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import TestSequencer from "@jest/test-sequencer";

// Files that start processes, wait for servers, or search all states: the longest by far, whatever their size.
const slowOnes =
  /from ".*(?:engines|harness|private-|-process|-bench|cluster|wrong|machine)|node:child_process/;
// Half a minute or more each.
const longest =
  /(?:contract|drivers|libraries|machine|payments|servers|soak|transactions)[\w-]*\.(?:long|table)\.test\.ts$/;

let started = [];

/** The test files of this run, for the reporter. */
export function startedFiles() {
  return started;
}

// oxlint-disable-next-line import/no-default-export -- jest calls it
export default class Sequencer extends TestSequencer {
  constructor(options) {
    super(options);
    const { randomize, seed } = options.globalConfig;
    this.seed = randomize ? seed : undefined;
  }

  sort(tests) {
    started = tests.map(({ path: file }) => file);
    if (this.seed !== undefined) return this.shuffle(tests);
    // oxlint-disable-next-line unicorn/no-array-sort -- it is no array that sorts here
    const sorted = super.sort(tests);
    // With the durations of an earlier run this is the longest first; without them the largest.
    if (sorted.some(({ duration }) => duration !== undefined)) return sorted;
    const isSlow = new Map(sorted.map((test) => [test, slowOnes.test(readFileSync(test.path, "utf8"))]));
    return sorted.toSorted((one, other) => Number(isSlow.get(other)) - Number(isSlow.get(one)));
  }

  /** By a digest of seed and name: one more file, or another folder of the checkout, leaves the others in their order. */
  shuffle(tests) {
    // stderr: stdout is the report's with --json.
    process.stderr.write(
      `files and tests in the order of seed ${this.seed}; again: --randomize --seed=${this.seed}\n`,
    );
    const rank = new Map(tests.map((test) => [test, this.rankOf(test)]));
    const isLongest = ({ path: file }) => Number(longest.test(file));
    return tests.toSorted(
      (one, other) => isLongest(other) - isLongest(one) || (rank.get(one) < rank.get(other) ? -1 : 1),
    );
  }

  rankOf({ path: file, context }) {
    const name = path.relative(context.config.rootDir, file).split(path.sep).join("/");
    return createHash("sha256").update(`${this.seed} ${name}`).digest("hex");
  }
}
