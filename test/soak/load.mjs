import { setTimeout as delay } from "node:timers/promises";

const workers = 12;
const settleWithinMs = 30_000;

/** Payouts, duplicates, replays and reused keys until `deadline`. */
export async function load(client, random, deadline) {
  const work = async () => {
    while (Date.now() < deadline) {
      await next(client, random);
      await delay(random.below(20));
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
}

function next(client, random) {
  const dice = random.below(100);
  if (dice < 45) return payout(client, random);
  if (dice < 60) return client.attempt(client.someKey(), "duplicate");
  if (dice < 65) return client.attempt(client.someKey(), "other amount", "99.00");
  return client.replay();
}

// A payout as an impatient service sends it: at once more than once, and again while it is not accepted.
async function payout(client, random) {
  const key = client.newKey();
  const copies = random.below(10) < 3 ? 2 + random.below(4) : 1;
  await Promise.all(Array.from({ length: copies }, () => client.attempt(key, "payout")));
  for (let tries = random.below(10); tries > 0 && !client.accepted.has(key); tries -= 1) {
    await delay(100 + random.below(300));
    await client.attempt(key, "retry");
  }
}

/** Repeats what is not accepted yet, as the service does, until all is. Returns the keys for which that never came true. */
export async function settle(client) {
  const deadline = Date.now() + settleWithinMs;
  const open = () => client.allKeys().filter((key) => !client.accepted.has(key));
  while (open().length > 0 && Date.now() < deadline) {
    const keys = open();
    for (let start = 0; start < keys.length; start += workers) {
      await Promise.all(keys.slice(start, start + workers).map((key) => client.attempt(key, "retry")));
    }
    await delay(200);
  }
  return open();
}
