import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach } from "@jest/globals";

const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  while (cleanUps.length > 0) await cleanUps.pop()?.();
});

/** Runs when the test has ended, last come first served. */
export function afterTest(cleanUp: () => unknown): void {
  cleanUps.push(cleanUp);
}

/** A folder that is there until the test has ended. */
export function testFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "countersign-test-"));
  afterTest(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A clock that stands still until it is told. */
export function testClock(): { now: () => number; advance: (ms: number) => void } {
  let nowMs = 1_800_000_000_000;
  return { now: () => nowMs, advance: (ms) => void (nowMs += ms) };
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
