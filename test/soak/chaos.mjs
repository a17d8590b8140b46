import { setTimeout as delay } from "node:timers/promises";

// Most sleeps outlast the lease of the payers: what such a process owned has another owner when it wakes up.
const sleepMs = { least: 700, most: 2_400 };

/** Kills and stops the `count` processes in turn while `goesOn()`, and once at least. Resolves to how often, when all run again. */
export async function unleash(platform, { count, random, goesOn }) {
  const counts = { kills: 0, stops: 0 };
  const first = random.below(2);
  for (let turn = first; turn < first + 2 || goesOn(); turn += 1) {
    await delay(200 + random.below(500));
    const index = random.below(count);
    if (turn % 2 === 0) {
      await platform.kill(index);
      counts.kills += 1;
    } else {
      await platform.stop(index, sleepMs.least + random.below(sleepMs.most - sleepMs.least));
      counts.stops += 1;
    }
  }
  return counts;
}
