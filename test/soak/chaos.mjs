import { setTimeout as delay } from "node:timers/promises";

// Twice the lease of the payers: a process that sleeps longest has lost every key that it owned.
const longestSleepMs = 2_000;

/** Kills and stops the processes in turn until `deadline`. Resolves to how often, when both run again. */
export async function unleash(platform, random, deadline) {
  const counts = { kills: 0, stops: 0 };
  for (let turn = random.integer(2); Date.now() < deadline; turn += 1) {
    await delay(200 + random.integer(500));
    const index = random.integer(2);
    if (turn % 2 === 0) {
      await platform.kill(index);
      counts.kills += 1;
    } else {
      await platform.stop(index, 100 + random.integer(longestSleepMs - 100));
      counts.stops += 1;
    }
  }
  return counts;
}
