// On SQLite a claim, a transaction and an end all settle without a turn of the event loop: a backlog must leave turns to others.
import { setImmediate } from "node:timers";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { expect, test } from "@jest/globals";
import { addTo, heard, openStores, queueOn } from "./queues.ts";

const count = 24;
/** More than a slice. */
const taskMs = 10;

/** Counts turns of the event loop until the test ends. */
function turnsOfLoop(): () => number {
  let turn = 0;
  let isOver = false;
  const next = (): void => {
    turn += 1;
    if (!isOver) setImmediate(next);
  };
  next();
  afterTest(() => (isOver = true));
  return () => turn;
}

function work(): void {
  const endsAtMs = performance.now() + taskMs;
  while (performance.now() < endsAtMs);
}

test.each(["exactlyOnce", "atLeastOnce"] as const)(
  "no two tasks that use up a slice share a turn of the event loop: %s",
  async (kind) => {
    const { stores } = openStores();
    const { outcomes } = heard();
    const turn = turnsOfLoop();
    const turns: number[] = [];
    const jobs = queueOn(stores, {
      [kind]: () => {
        turns.push(turn());
        work();
      },
    });
    const ids = Array.from({ length: count }, (_, index) => String(index));
    await addTo(stores, jobs, ...ids.map((id) => ({ id, body: "" })));
    jobs.start();
    await eventually(() => outcomes.length === count);
    expect(outcomes).toEqual(ids.map(() => "done"));
    expect(new Set(turns).size).toBe(count);
  },
);

test("several queues of one process share a slice", async () => {
  const { stores } = openStores();
  const { outcomes } = heard();
  const turn = turnsOfLoop();
  const turns: number[] = [];
  const queues = ["one", "two", "three"].map((queue) =>
    queueOn(stores, {
      queue,
      exactlyOnce: () => {
        turns.push(turn());
        work();
      },
    }),
  );
  for (const jobs of queues) {
    // oxlint-disable-next-line no-await-in-loop -- one connection
    await addTo(stores, jobs, { id: "1", body: "" }, { id: "2", body: "" });
  }
  for (const jobs of queues) jobs.start();
  await eventually(() => outcomes.length === 6);
  expect(new Set(turns).size).toBe(6);
});
