// A transaction waits in its first step until the one before it has ended.
import type { WorkStores } from "@countersign/idempotency/work";
import type { Connection } from "../../../store-sql/test/sqlite/connections.ts";
import type { WrongStores } from "../work-harness.ts";
import { OpenTransactions } from "./open-transactions.ts";
import { type WrongWork, bound } from "./work-kit.ts";

/** What a step does that meets an open transaction. */
interface Meetings {
  /** `goes on`: as if there were none. `loses the lane`: writes, and removes the lane. */
  readonly add?: "goes on" | "loses the lane";
  readonly finish?: "refuses";
  readonly extend?: "keeps the old time";
  readonly claim?: "waits";
}

/** Right stores, unless a step does something else that meets an open transaction. */
export function waitingStores(meets: Meetings = {}): WrongStores {
  return ({ database, work, transactions, now }) => {
    const open = new OpenTransactions(database);
    /** Whether it had to wait. */
    const lock = async (tx: Connection): Promise<boolean> => {
      if (open.has(tx)) return false;
      const meeting = open.held;
      await meeting;
      open.lock(tx);
      return meeting !== undefined;
    };
    const stores: Pick<WorkStores<Connection>, "work" | "transactions"> = {
      transactions: Object.assign(Object.create(transactions), {
        mode: "async",
        run: open.run.bind(open),
        faultOf: () => undefined,
      }),
      work: Object.assign(bound(work), {
        mode: "async",
        async add(...[tx, queue, tasks]: Parameters<typeof work.add>) {
          if (open.held !== undefined && meets.add === "goes on")
            return tasks.map(() => ({ status: "added" }));
          const waited = await lock(tx);
          const answers = work.add(database, queue, tasks);
          if (waited && meets.add === "loses the lane") database.exec("DELETE FROM countersign_lanes");
          return answers;
        },
        async finish(...[tx, task]: Parameters<typeof work.finish>) {
          const waited = await lock(tx);
          return !(waited && meets.finish === "refuses") && work.finish(database, task);
        },
        async extend(...[tasks, leaseMs]: Parameters<typeof work.extend>) {
          if (open.held === undefined) return work.extend(tasks, leaseMs);
          // In the open transaction: the connection is one for both.
          const renewal = database.prepare("UPDATE countersign_tasks SET leased_us = ? WHERE token = ?");
          const until = (now() + leaseMs) * 1_000;
          if (meets.extend === undefined) for (const { token } of tasks) renewal.run(until, token);
          return tasks.map(({ id }) => id);
        },
        async claim(claim: Parameters<typeof work.claim>[0]) {
          if (meets.claim === "waits") await open.held;
          return open.held === undefined ? work.claim(claim) : [];
        },
      }),
    };
    return stores;
  };
}

const failing = (does: string, meets: Meetings, cases: readonly string[]): WrongWork =>
  Object.fromEntries(cases.map((fails) => [fails, { [`${does}: ${fails}`]: waitingStores(meets) }]));

const endings = (start: string) => ["commit", "roll"].map((ending) => `${start} does ${ending}`);

export const waitingWork: WrongWork = {
  ...failing("waits for no open transaction", { add: "goes on" }, [
    "an id of an open transaction is known",
    "an id of an open transaction is added",
  ]),
  ...failing(
    "loses the lane it has waited for",
    { add: "loses the lane" },
    endings("a task that is added while its entity's last one ends is not lost: the end"),
  ),
  ...failing(
    "has lost a task whose entity it waited for",
    { finish: "refuses" },
    endings("a task that an open transaction adds while its entity's last one ends is not lost: the adding"),
  ),
  ...failing("renews no lease beside an open transaction", { extend: "keeps the old time" }, [
    "a lease is renewed while an open transaction adds",
  ]),
  ...failing("waits with a claim", { claim: "waits" }, ["a claim waits for no open transaction"]),
};
