import { expect, test } from "@jest/globals";
import { setImmediate } from "node:timers/promises";
import { createTaskQueue, type WorkStore } from "@countersign/idempotency/work";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { allowWarnings } from "@countersign/test-support/runs/expect-warning.ts";
import { quick } from "@countersign/test-support/runs/work-stores.ts";
import { type OpenStores, openEach } from "./payer.ts";
import { describeOn, type Opened, type TableRow } from "./row.ts";

const queue = "q";
const reason = "why";

/** What the table of work has to do by the library. */
export function describeWork<Tx>(row: TableRow<Tx>): void {
  let opened: Opened<Tx>;
  let stores: OpenStores<Tx>;
  let work: WorkStore<Tx>;

  describeOn(row.engine)(`the table of work by ${row.name}`, () => {
    openEach(row, (made) => {
      ({ opened, stores } = made);
      if (stores.work === undefined) throw new Error(`${row.engine} has no table of work`);
      work = stores.work;
    });

    test("has of a task what its handler wrote before it settled, and nothing later", async () => {
      allowWarnings(/\blate-statement\b|^\[task-/);
      let runs = 0;
      const late: Promise<unknown>[] = [];
      const write = async (tx: Tx, id: string): Promise<void> => {
        await opened.insertByHandler(tx, id);
        await opened.database.flush?.(tx);
      };
      const jobs = createTaskQueue({
        stores: { ...stores, work },
        queue,
        ...quick,
        async exactlyOnce(_task, { tx }) {
          runs += 1;
          const isFirst = runs === 1;
          await write(tx, `effect ${runs}`);
          const goesOn = async (): Promise<void> => {
            if (isFirst) await opened.exec(tx, "SELECT 1");
            else await setImmediate();
            // Not by an entity: MikroORM would flush it before COMMIT, which fails the run.
            await opened.exec(tx, `INSERT INTO ${opened.table} VALUES ('late ${runs}')`);
          };
          late.push(goesOn().catch(() => {}));
          if (isFirst) throw new Error("fails beside its statement");
        },
      });
      afterTest(() => jobs.drain({ timeoutMs: 10_000 }));
      await stores.transactions.run((tx) => jobs.add(tx, { id: "1", body: "" }));
      jobs.start();
      await eventually(async () => runs > 2 || (await work.read(queue, "1"))?.state === "done");
      await Promise.all(late);
      expect([runs, await opened.countRows()]).toEqual([2, 1]);
    });

    test("takes each of its steps", async () => {
      const { transactions } = stores;
      const task = { id: "1", entity: "e", body: "\u00e9 ?" };
      const owned = { queue, id: "1", token: "t" };
      const add = (body: string) => transactions.run((tx) => work.add(tx, queue, [{ ...task, body }]));
      const claim = async () => (await work.claim({ queue, limit: 10, token: "t", leaseMs: 60_000 })).length;
      expect(await add(task.body)).toEqual([{ status: "added" }]);
      expect(await add("other")).toEqual([{ status: "known", body: task.body }]);
      expect(await claim()).toBe(1);
      expect(await work.extend([owned], 60_000)).toEqual(["1"]);
      await work.giveBack([owned], 0);
      expect(await claim()).toBe(1);
      expect(await work.fail(owned, { reason, retryInMs: 0 })).toBe(true);
      expect(await claim()).toBe(1);
      expect(await work.fail(owned, { reason, retryInMs: undefined })).toBe(true);
      expect(await work.retry(queue, { deadSinceMs: 0 })).toBe(1);
      expect(await claim()).toBe(1);
      await transactions.run(async (tx) => {
        const claimed = {
          keys: [],
          recovery: "rerun",
          leaseMs: 60_000,
          waitMs: 1_000,
          idleTimeoutMs: 5_000,
        } as const;
        await transactions.begin(tx, claimed);
        await opened.insertByHandler(tx, "effect");
        expect(await work.finish(tx, owned)).toBe(true);
        const mark = { scope: "s", subject: "s", at: 1n };
        const older = { ...mark, at: 0n };
        expect([await work.advance(tx, mark), await work.advance(tx, older)]).toEqual([true, false]);
        await transactions.keep(tx, [], false);
      });
      expect(await opened.countRows()).toBe(1);
      expect(await work.read(queue, "1")).toMatchObject({ ...task, state: "done", attempts: 1 });
      await transactions.run((tx) => work.add(tx, queue, [{ id: "2", body: "" }]));
      await work.pause(queue, { by: "anna", note: reason });
      expect(await claim()).toBe(0);
      expect(await work.summaries()).toEqual([
        {
          queue,
          paused: { by: "anna", note: reason, atMs: expect.any(Number) },
          open: 1,
          running: 0,
          dead: 0,
          done: 1,
          oldestOpenMs: expect.any(Number),
        },
      ]);
      expect(await work.resume(queue)).toBe(true);
      const { tasks, cursor } = await work.list({ queue, limit: 1 });
      expect(tasks.map(({ id }) => id)).toEqual(["1"]);
      expect((await work.list({ queue, limit: 1, cursor })).tasks.map(({ id }) => id)).toEqual(["2"]);
      expect(await work.discard(queue, ["1"], { by: "anna", note: reason })).toBe(0);
      expect(await work.prune()).toBe(0);
    });
  });
}
