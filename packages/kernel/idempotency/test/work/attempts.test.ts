// What counts as an attempt: whatever has begun its handler.
import type { createTaskQueue } from "@countersign/idempotency/work";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually, sleep } from "@countersign/test-support/runs/eventually.ts";
import { describe, expect, test } from "@jest/globals";
import {
  addTo,
  attempted,
  changed,
  heard,
  lost,
  notesOf,
  openStores,
  queue,
  queueOn,
  writeNote,
  type Db,
  type Stores,
} from "./queues.ts";

type Run = Stores["transactions"]["run"];
type Given = Partial<Parameters<typeof createTaskQueue<Db, "sync">>[0]>;

/** Stores whose transactions run otherwise; what fails so is a lost line to them, but a full lock. */
function running(stores: Stores, run: Run): Stores {
  const faultOf = (error: unknown) => (error === locked ? "locked" : "unavailable");
  return { ...stores, transactions: changed(stores.transactions, { run, faultOf }) };
}

const locked = new Error("another connection has the write lock");
const boom = (): never => {
  throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") });
};

describe("an attempt whose handler never began", () => {
  test.each<[string, () => Promise<never>]>([
    ["whose transaction could not be begun", lost],
    ["that waited too long for a lock", () => Promise.reject(locked)],
  ])("%s is given back, and does not count", async (_why, fails) => {
    const { stores, clock } = openStores();
    const { codes, outcomes } = heard();
    let isDown = true;
    const { run } = stores.transactions;
    const down = running(stores, (work) => (isDown ? fails() : run.call(stores.transactions, work)) as never);
    const jobs = queueOn(down, { exactlyOnce: () => {} });
    await addTo(stores, jobs, { id: "1", body: "" });
    jobs.start();
    await eventually(() => outcomes.length > 0);
    expect(outcomes).toEqual(["given-back"]);
    expect(codes).toEqual(["task-given-back"]);
    expect(await stores.work.read(queue, "1")).toMatchObject({ state: "open", attempts: 0, failures: [] });
    isDown = false;
    clock.advance(1_000);
    await eventually(() => outcomes.includes("done"));
  });
});

describe("an attempt whose handler began counts, and is a dead letter some day", () => {
  /** Lets two attempts fail. */
  async function untilDead(jobsOf: (stores: Stores) => Given) {
    const given = ({ stores }: { stores: Stores }): Given => ({ maxAttempts: 2, ...jobsOf(stores) });
    const { outcomes, record } = await attempted(given, { until: "dead", task: { entity: "e" } });
    expect(outcomes).toEqual(["failed", "dead"]);
    return record;
  }

  const run = (stores: Stores): Run => stores.transactions.run.bind(stores.transactions);

  test("its error looks like a lost line", async () => {
    const record = await untilDead((made) => ({ stores: running(made, run(made)), exactlyOnce: boom }));
    expect(record?.failures.map(({ reason }) => reason)).toEqual([
      "TypeError: fetch failed",
      "TypeError: fetch failed",
    ]);
  });

  test("a repetition after a conflict cannot begin its transaction", async () => {
    let isFirst = false;
    await untilDead((stores) => {
      const conflict = Object.assign(new Error("conflict"), { code: "SQLITE_BUSY" });
      const transactions = changed(stores.transactions, {
        faultOf: (error) => (error === conflict ? "conflict" : "unavailable"),
        run: ((work: (tx: Db) => unknown) => {
          isFirst = !isFirst;
          return isFirst ? run(stores)(work) : lost();
        }) as Run,
      });
      return {
        stores: { ...stores, transactions },
        exactlyOnce() {
          throw conflict;
        },
      };
    });
  });

  test.each(["by commit()", "by returning"])("it acted, and could not end %s", async (how) => {
    const acts: number[] = [];
    await untilDead((stores) => ({
      stores: running(stores, lost),
      async atLeastOnce(_task, { attempt, commit }) {
        acts.push(attempt);
        if (how === "by commit()") await commit(() => {});
      },
    }));
    expect(acts).toEqual([1, 2]);
  });

  test("its COMMIT got no reply, and was rolled back", async () => {
    const record = await untilDead((made) => {
      const rolledBack = async (work: (tx: Db) => unknown): Promise<never> => {
        try {
          await run(made)((tx) => {
            void work(tx);
            throw new Error("rolled back");
          });
        } catch {
          // Nobody hears of it.
        }
        return lost();
      };
      return { stores: running(made, rolledBack), exactlyOnce: (_task, { tx }) => writeNote(tx, "once") };
    });
    expect(record?.failures[1]?.reason).toMatch(/COMMIT was sent and its reply was lost/);
  });
});

test.each(["exactlyOnce", "atLeastOnce"] as const)(
  "an attempt whose COMMIT got no reply, and took effect, is done: %s",
  async (kind) => {
    const handler: Given =
      kind === "exactlyOnce"
        ? { exactlyOnce: (_task, { tx }) => writeNote(tx, "once") }
        : { atLeastOnce: (_task, { commit }) => commit((tx) => writeNote(tx, "once")) };
    const { db, codes, outcomes, record } = await attempted(({ stores }) => {
      const committed = (async (work: (tx: Db) => unknown) => {
        await stores.transactions.run(work);
        return lost();
      }) as Run;
      return { stores: running(stores, committed), ...handler };
    });
    expect([outcomes, codes]).toEqual([["done"], []]);
    expect(notesOf(db)).toEqual(["once"]);
    expect(record).toMatchObject({ state: "done", attempts: 1, failures: [] });
  },
);

describe("a handler that goes on after its commit()", () => {
  test("keeps its signal: no other worker has what is done", async () => {
    const aborted: boolean[] = [];
    const { codes, outcomes } = await attempted({
      leaseMs: 1_000,
      storeTimeoutMs: 500,
      async atLeastOnce(_task, { commit, signal }) {
        await commit(() => {});
        // Two renewals.
        await sleep(800);
        aborted.push(signal.aborted);
      },
    });
    expect([outcomes, codes, aborted]).toEqual([["done"], [], [false]]);
  });

  test("keeps it while its COMMIT is under way, which another one's renewal may see before it", async () => {
    const aborted: boolean[] = [];
    const { outcomes } = await attempted(({ stores }) => {
      const slow = changed(stores.transactions, {
        run: (async (work: (tx: Db) => unknown) => {
          const result = await stores.transactions.run(work);
          await sleep(800);
          return result;
        }) as Run,
      });
      return {
        stores: { ...stores, transactions: slow },
        leaseMs: 1_000,
        storeTimeoutMs: 500,
        async atLeastOnce(_task, { commit, signal }) {
          await commit(() => {});
          aborted.push(signal.aborted);
        },
      };
    });
    expect([outcomes, aborted]).toEqual([["done"], [false]]);
  });

  test("for longer than its time is done all the same, and is told of", async () => {
    const { codes, outcomes } = await attempted({
      timeoutMs: 10,
      leaseMs: 1_000,
      storeTimeoutMs: 500,
      async atLeastOnce(_task, { commit }) {
        await commit(() => {});
        await new Promise(() => {});
      },
    });
    expect([outcomes, codes]).toEqual([["done"], ["task-failed"]]);
  });
});

describe("a commit() that nobody awaits", () => {
  /** What would end the process, until the test ends. */
  function unhandled(): unknown[] {
    const reasons: unknown[] = [];
    const note = (reason: unknown): void => void reasons.push(reason);
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    process.on("unhandledRejection", note);
    afterTest(() => {
      process.off("unhandledRejection", note);
      for (const other of others) process.on("unhandledRejection", other);
    });
    return reasons;
  }

  test.each([1, 2])(
    "and that rejects fails the attempt, and ends no process: called %i times",
    async (times) => {
      const reasons = unhandled();
      const { outcomes, record } = await attempted({
        maxAttempts: 1,
        atLeastOnce(_task, { commit }) {
          for (let call = 0; call < times; call += 1) void commit(boom);
        },
      });
      await sleep(10);
      expect([outcomes, reasons]).toEqual([["dead"], []]);
      expect(record?.failures[0]?.reason).toBe("TypeError: fetch failed");
    },
  );
});

test.each<[string, () => unknown]>([
  ["an Error", () => new Error("no such account")],
  ["a Response", () => new Response(null, { status: 500 })],
])("a task whose handler returns %s is not done", async (_what, make) => {
  for (const form of ["exactlyOnce", "atLeastOnce"] as const) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const { outcomes } = await attempted({ [form]: make });
    expect(outcomes).toEqual(["failed"]);
  }
});
