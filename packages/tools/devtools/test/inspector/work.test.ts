import { createStores } from "@countersign/store-sql";
import type { InspectorOptions } from "@countersign/devtools/inspector";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import Database from "libsql";
import { InspectorBench, seeded } from "./inspector-bench.ts";

const bench = new InspectorBench();
let database: InstanceType<typeof Database>;
let stores: ReturnType<typeof createStores>;
beforeEach(() => {
  database = new Database(":memory:");
  stores = createStores({ database });
  afterTest(() => {
    stores.close();
    database.close();
  });
});

type Work = NonNullable<InspectorOptions["work"]>[string];

const openWith = (work: Readonly<Record<string, Work>>): Promise<void> => bench.open({ work });

function add(queue: string, ids: readonly string[]): void {
  const tasks = ids.map((id) => ({ id, entity: `of ${id}`, body: `{"name":"a person"}` }));
  void database.transaction(() => stores.work.add(database, queue, tasks))();
}

async function fail(queue: string, retryInMs?: number): Promise<void> {
  const claim = { queue, limit: 1, token: `token-of-${queue}`, leaseMs: 60_000 };
  for (const task of await stores.work.claim(claim)) {
    await stores.work.fail(task, { reason: `answered 503, ${seeded.other}, redis://u:pw@host/`, retryInMs });
  }
}

describe("work", () => {
  test("is told by store and queue, without bodies and tokens", async () => {
    add("inbox", ["evt-1", "evt-2"]);
    add("outcomes", ["op-1"]);
    await fail("outcomes");
    await stores.work.pause("inbox", { by: "ada", note: `moves ${seeded.other}` });
    await openWith({ main: stores.work });
    expect((await bench.ask("/inspector/overview")).body).toMatchObject({ hasWork: true });
    const { body } = await bench.ask("/inspector/work");
    expect(body).toMatchObject({
      stores: [
        {
          store: "main",
          queues: [
            { queue: "inbox", open: 2, dead: 0, paused: { by: "ada", note: "moves [masked]" } },
            { queue: "outcomes", open: 0, dead: 1 },
          ],
        },
      ],
    });
    const dead = await bench.ask("/inspector/work/tasks?store=main&queue=outcomes&state=dead");
    expect(dead.body).toMatchObject({
      isCut: false,
      tasks: [
        {
          queue: "outcomes",
          id: "op-1",
          entity: "of op-1",
          state: "dead",
          attempts: 1,
          failure: { reason: "answered 503, [masked], redis://...@host/", attempt: 1 },
        },
      ],
    });
    expect(dead.text).not.toMatch(/a person|token-of|"body"|u:pw/);
    const open = await bench.ask("/inspector/work/tasks?store=main&queue=inbox");
    expect(open.body).toMatchObject({ tasks: [{ id: "evt-1" }, { id: "evt-2" }] });
  });

  test("is listed to a bound, oldest first", async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `evt-${index}`);
    for (const id of ids) add("inbox", [id]);
    await openWith({ main: stores.work });
    const { body } = await bench.ask("/inspector/work/tasks?store=main&queue=inbox&state=open");
    expect(body["isCut"]).toBe(true);
    expect((body["tasks"] as { id: string }[]).map(({ id }) => id)).toEqual(ids.slice(0, 20));
  });

  test("of a store that fails is a message; another store is shown all the same", async () => {
    add("inbox", ["evt-1"]);
    const gone = () => Promise.reject(new Error(`no connection, ${seeded.other}, mysql://u:pw@h/`));
    const throws = (): never => {
      throw new TypeError("broken");
    };
    await openWith({
      gone: { engine: "mysql", summaries: gone, list: gone },
      broken: { engine: "x", summaries: throws, list: throws },
      main: stores.work,
    });
    const { status, body, text } = await bench.ask("/inspector/work");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      stores: [
        { store: "gone", problem: "The store does not answer: no connection, [masked], mysql://...@h/" },
        { store: "broken", problem: "The store does not answer: broken" },
        { store: "main", queues: [{ queue: "inbox" }] },
      ],
    });
    expect(text).not.toContain("u:pw");
    for (const store of ["gone", "broken"])
      expect(await bench.ask(`/inspector/work/tasks?store=${store}&queue=inbox`)).toMatchObject({
        status: 503,
        body: { code: "work-unavailable", detail: expect.stringContaining("The store does not answer") },
      });
  });

  test("is asked for only by whoever looks at it", async () => {
    const summaries = jest.spyOn(stores.work, "summaries");
    const list = jest.spyOn(stores.work, "list");
    await openWith({ main: stores.work });
    await bench.pay("key-1");
    await bench.newest();
    await bench.ask("/inspector/overview");
    expect([summaries.mock.calls, list.mock.calls]).toEqual([[], []]);
    expect((await bench.ask("/inspector/work", { "X-Page-Token": "" })).status).toBe(401);
    expect(summaries).not.toHaveBeenCalled();
    await bench.ask("/inspector/work");
    expect(summaries).toHaveBeenCalledTimes(1);
  });

  test("that there is none of is said", async () => {
    await bench.open();
    expect((await bench.ask("/inspector/overview")).body).toMatchObject({ hasWork: false });
    expect((await bench.ask("/inspector/work")).body).toEqual({ stores: [] });
    expect(await bench.ask("/inspector/work/tasks?store=main&queue=inbox")).toMatchObject({ status: 404 });
    for (const query of ["state=running", "store=a&store=b", `queue=${"q".repeat(513)}`])
      expect(await bench.ask(`/inspector/work/tasks?${query}`)).toMatchObject({ status: 400 });
    for (const path of ["/inspector/work", "/inspector/work/tasks"])
      expect(await bench.ask(path, {}, "POST")).toMatchObject({ status: 405 });
  });
});
