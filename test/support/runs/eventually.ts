import { setTimeout as sleep } from "node:timers/promises";

export { sleep };

/** Waits until `check` holds; fails after a minute. */
export async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  const until = performance.now() + 60_000;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- polling
    if (await check()) return;
    if (performance.now() > until) throw new Error("did not happen within a minute");
    // oxlint-disable-next-line no-await-in-loop -- polling
    await sleep(5);
  }
}
