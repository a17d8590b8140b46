import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { expect } from "@jest/globals";

/** Starts a step while another process holds the write lock of the file: it waits, and the event loop goes on. */
export async function waitsForWriteLock<T>(
  file: string,
  step: () => Promise<T>,
  meanwhile: () => void = () => {},
): Promise<T> {
  const child = fork(fileURLToPath(new URL("children/lock-holder.mjs", import.meta.url)), [file]);
  afterTest(() => child.kill("SIGKILL"));
  await once(child, "message");
  let ended = false;
  const waiting = step().finally(() => {
    ended = true;
  });
  // A blocking wait would end before the first of these turns.
  for (let turn = 0; turn < 20; turn += 1) {
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
  expect(ended).toBe(false);
  meanwhile();
  child.send("let go");
  return waiting;
}
