import { type CaseRun, type IdempotencyCase, hasFacility, idempotencyRules } from "../contract.ts";
import type { ContractFacility, IdempotencyStoreHarness } from "../harness.ts";
import { type Event, type Possible, histories } from "../model/histories.ts";
import { memberOf } from "../model/step.ts";
import { World } from "../model/world.ts";

interface Failure {
  readonly error: unknown;
  readonly lines: readonly string[];
  /** How many events there were with the one that failed. */
  readonly length: number;
}

// A store that is slow to make is made seldom, and one that fills up stays small.
const historiesOfStore = 10;
// A case has a minute. On a busy machine fewer histories are tried, and a failure is shortened less.
const triesMs = 12_000;
const shortensMs = 8_000;

export const modelCases: readonly IdempotencyCase[] = [
  ...idempotencyRules([], {
    "whatever steps come, each answer and each record is the reference's": (harness, run) =>
      follow({ ...run, histories: run.histories / 4 }, harness, false),
  }),
  ...idempotencyRules(["clock"], {
    "whatever steps come at whatever times, each answer and each record is the reference's": (harness, run) =>
      follow(run, harness, true),
  }),
];

async function follow(
  run: CaseRun<IdempotencyStoreHarness>,
  first: IdempotencyStoreHarness,
  clock: boolean,
): Promise<void> {
  const deadline = performance.now() + triesMs;
  const can = (facility: ContractFacility): boolean =>
    !run.without.includes(facility) && hasFacility(first, facility);
  const possible: Possible = {
    clock,
    retention: can("retention"),
    list: can("list"),
  };
  for (let tried = 0; tried < run.histories && performance.now() < deadline; tried += historiesOfStore) {
    const seed = run.seed + tried;
    const count = Math.min(historiesOfStore, Math.ceil(run.histories - tried));
    const events = histories(seed, count, possible);
    const play = (some: readonly Event[]): Promise<Failure | undefined> => onNewStore(run, some, clock);
    // oxlint-disable-next-line no-await-in-loop -- one store after the other
    const failure = await (tried === 0 ? playOn(first, events, clock) : play(events));
    if (failure === undefined) continue;
    // oxlint-disable-next-line no-await-in-loop -- the first failure ends the loop
    const shortest = await shorten(events.slice(0, failure.length), failure, play);
    throw errorOf(shortest, seed);
  }
}

async function onNewStore(
  { makeStore }: CaseRun<IdempotencyStoreHarness>,
  events: readonly Event[],
  clock: boolean,
): Promise<Failure | undefined> {
  const harness = await makeStore();
  try {
    return await playOn(harness, events, clock);
  } finally {
    await harness.close();
  }
}

async function playOn(
  harness: IdempotencyStoreHarness,
  events: readonly Event[],
  clock: boolean,
): Promise<Failure | undefined> {
  const world = new World(harness, (await harness.another?.()) ?? harness.store, clock);
  for (const [index, event] of events.entries()) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- in turn
      await event(world);
    } catch (error) {
      return { error, lines: world.lines, length: index + 1 };
    }
  }
  return undefined;
}

/** Leaves out whatever the failure does not need: halves first, then less and less. */
async function shorten(
  events: readonly Event[],
  failure: Failure,
  play: (events: readonly Event[]) => Promise<Failure | undefined>,
): Promise<Failure> {
  const deadline = performance.now() + shortensMs;
  let shortest = failure;
  let left = events;
  for (let size = Math.ceil(left.length / 2); size > 0; size = Math.floor(size / 2)) {
    for (let at = 0; at < left.length && performance.now() < deadline;) {
      const fewer = [...left.slice(0, at), ...left.slice(at + size)];
      // oxlint-disable-next-line no-await-in-loop -- each begins with what is left
      const again = await play(fewer);
      if (again === undefined) at += size;
      else {
        shortest = again;
        left = fewer.slice(0, again.length);
      }
    }
  }
  return shortest;
}

function errorOf({ error, lines }: Failure, seed: number): Error {
  // Not by its class: a runner may have several of it.
  const what = String(memberOf(error, "message") ?? error);
  const steps = lines.map((line, index) => `  ${index + 1}. ${line}`).join("\n");
  const message = `${what}\n\nWhat led there:\n${steps}\n\nThe option seed: ${seed} begins with it.`;
  return new Error(message, { cause: error });
}
