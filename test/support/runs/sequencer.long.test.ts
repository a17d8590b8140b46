import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";

interface Test {
  readonly path: string;
  readonly context: { readonly config: { readonly rootDir: string } };
}

interface Sequencer {
  sort(tests: readonly Test[]): readonly Test[];
}

type NewSequencer = new (options: { globalConfig: { randomize: boolean; seed: number } }) => Sequencer;

const { default: Sequencer } = (await import(new URL("sequencer.mjs", import.meta.url).href)) as {
  default: NewSequencer;
};

let folder: string;
const written = jest.spyOn(process.stderr, "write");

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sequencer-"));
  written.mockReset().mockReturnValue(true);
});

afterEach(() => {
  written.mockReset();
  rmSync(folder, { recursive: true, force: true });
});

/** What jest hands over of the test files in a checkout. */
function testsIn(rootDir: string, names: readonly string[], durations: Record<string, number> = {}) {
  const cache = path.join(folder, "durations.json");
  const files = names.map((name) => path.join(rootDir, name));
  const known = Object.entries(durations).map(([name, ms]) => [path.join(rootDir, name), [1, ms]]);
  writeFileSync(cache, JSON.stringify(Object.fromEntries(known)));
  const hasteFS = { getSize: (file: string) => path.basename(file).length };
  const config = { rootDir, cache: true, cacheDirectory: folder, id: "test" };
  return { cache, tests: files.map((file) => ({ path: file, context: { config, hasteFS } })) };
}

function orderOf(
  names: readonly string[],
  {
    seed,
    rootDir = folder,
    durations,
  }: { seed?: number; rootDir?: string; durations?: Record<string, number> },
): string[] {
  const { tests, cache } = testsIn(rootDir, names, durations);
  const sequencer = new Sequencer({ globalConfig: { randomize: seed !== undefined, seed: seed ?? 1 } });
  Object.assign(sequencer, { _getCachePath: () => cache });
  // oxlint-disable-next-line unicorn/no-array-sort -- it is no array that sorts here
  return sequencer.sort(tests).map((sorted) => path.relative(rootDir, sorted.path));
}

const many = Array.from({ length: 30 }, (_, index) => `packages/p/test/${index}.test.ts`);

describe("the order of test files with --randomize", () => {
  test("is another one for another seed, and has every file once", () => {
    const [one, other] = [orderOf(many, { seed: 1 }), orderOf(many, { seed: 2 })];
    for (const order of [one, other]) {
      expect(order).toHaveLength(many.length);
      expect(new Set(order)).toEqual(new Set(many));
    }
    expect(one).not.toEqual(other);
    expect(one).not.toEqual(many);
  });

  test("is the same for the same seed, however jest found the files and wherever the checkout is", () => {
    const found = orderOf(many, { seed: -7 });
    const elsewhere = { seed: -7, rootDir: path.join(folder, "elsewhere") };
    expect(orderOf([...many.slice(10), ...many.slice(0, 10)], elsewhere)).toEqual(found);
  });

  test("stays when another file comes", () => {
    const others = orderOf([...many, "packages/p/test/new.test.ts"], { seed: 5 });
    expect(others.filter((name) => !name.endsWith("new.test.ts"))).toEqual(orderOf(many, { seed: 5 }));
  });

  test("is told with its seed on stderr: stdout may be a report", () => {
    orderOf(many, { seed: 123 });
    expect(written).toHaveBeenCalledWith(expect.stringContaining("--randomize --seed=123"));
  });
});

describe("the order of test files", () => {
  test("is by duration where an earlier run has shown it, the longest first", () => {
    const durations = { "a.test.ts": 10, "b.test.ts": 30, "c.test.ts": 20 };
    expect(orderOf(Object.keys(durations), { durations })).toEqual(["b.test.ts", "c.test.ts", "a.test.ts"]);
    expect(written).not.toHaveBeenCalled();
  });

  test("without it begins with those that start servers and processes, then by size", () => {
    const files = {
      "large-and-quick.test.ts": 'import { rawBody } from "@countersign/raw-body";',
      "server.test.ts": 'import { startPrivateRedis } from "../servers/private-redis.ts";',
      "quick.test.ts": 'import { rawBody } from "@countersign/raw-body";',
      "a-process.test.ts": 'import { spawn } from "node:child_process";',
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
    expect(orderOf(Object.keys(files), {})).toEqual([
      "a-process.test.ts",
      "server.test.ts",
      "large-and-quick.test.ts",
      "quick.test.ts",
    ]);
  });
});
