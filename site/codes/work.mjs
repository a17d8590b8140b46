// Tasks that commit with what caused them, and the outcomes of payouts.
import { createServer } from "node:http";
import { once } from "node:events";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createOutcomes } from "countersign/outcomes";
import { createSqliteStores } from "@countersign/store-sqlite";
import { createTaskQueue } from "@countersign/idempotency/work";
import Database from "libsql";
import { notice, noticed, refusalOf, row } from "./provoke.mjs";

const tasks = ["createTaskQueue", "createOutcomes"];
const queue = "letters";
const lost = () => Promise.reject(new Error("Connection terminated unexpectedly"));
const fail = () => {
  throw new Error("no such printer");
};

function openStores() {
  let nowMs = 1_800_000_000_000;
  const stores = createSqliteStores({
    database: new Database(":memory:"),
    pruneIntervalMs: 0,
    now: () => nowMs,
  });
  return { stores, pass: (ms) => void (nowMs += ms) };
}

/** The notice that comes while a worker has what `begin` adds; `end` gives what drains it. */
const whileWorking = (code, begin) =>
  noticed(code, async () => {
    let hear;
    const heard = new Promise((resolve) => void (hear = resolve));
    const listen = (told) => told.code === code && hear();
    subscribe("countersign:notice", listen);
    const end = await begin(openStores());
    await heard;
    unsubscribe("countersign:notice", listen);
    await end.drain({ timeoutMs: 1_000 });
  });

const worked = (code, options, change = (stores) => stores) =>
  whileWorking(code, async ({ stores, pass }) => {
    const usual = { queue, pollMs: 10, maxAttempts: 2 };
    const letters = createTaskQueue({ ...usual, ...options({ stores, pass }), stores: change(stores) });
    await stores.transactions.run((tx) => void stores.work.add(tx, queue, [{ id: "letter-7", body: "" }]));
    letters.start();
    return letters;
  });

async function serviceAnswering(status) {
  const server = createServer(
    (_req, res) => void res.writeHead(status, { Connection: "close" }).end(),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  server.unref();
  return `http://127.0.0.1:${server.address().port}/outcomes`;
}

const settled = { idempotencyKey: "payout-1.funding-1.business-1", status: "SETTLED" };

export const refusalsOfWork = {
  "outcome-differs": row(
    500,
    ["createOutcomes"],
    "`outcomes.report()` was called with another outcome of a payout than before. It throws, so that the transaction that settles the payout again rolls back.",
    "Find out which outcome is true. What was reported is in the queue `outcomes`, and perhaps at the service.",
    "A payout that settles, and then fails:",
    () =>
      refusalOf("createOutcomes", () => {
        const { stores } = openStores();
        const outcomes = createOutcomes({ stores, url: "https://api.service.example/outcomes" });
        return stores.transactions.run((tx) => {
          outcomes.report(tx, settled);
          outcomes.report(tx, { ...settled, status: "FAILED", reason: "account closed" });
        });
      }),
  ),
};

export const noticesOfWork = {
  "task-failed": notice(
    ["createTaskQueue"],
    "An attempt of a task failed, and another one follows. After `commit()` none follows: the task is done.",
    "None, unless it is frequent: the record of the task has the reasons of its attempts.",
    "A handler that throws:",
    worked("task-failed", () => ({ atLeastOnce: fail })),
  ),
  "task-dead": notice(
    [...tasks, "createInbox"],
    "A task is a dead letter: its handler said so, or its attempts are exhausted. It does not run again by itself.",
    "Read its reasons (`stores.work.read`), remove the cause, and retry it (`stores.work.retry`), or discard it: [inbox](../guide/inbox.md#attempts).",
    "A handler that throws at its only attempt:",
    worked("task-dead", () => ({ atLeastOnce: fail, maxAttempts: 1 })),
  ),
  "task-gone": notice(
    tasks,
    "An attempt took longer than its lease, and another worker has the task now. What the attempt wrote by `commit()` or its own transaction was rolled back; what it did outside may be done twice.",
    "Look for what stopped this process, or raise `leaseMs`.",
    "A process that stood still for a minute:",
    worked("task-gone", ({ stores, pass }) => ({
      async atLeastOnce() {
        pass(60_000);
        await stores.work.claim({ queue, limit: 1, token: "another", leaseMs: 60_000 });
      },
    })),
  ),
  "task-given-back": notice(
    tasks,
    "The transaction of a task could not be begun, so its handler never ran. The attempt does not count, and the task is tried again in a second. An attempt whose handler began counts.",
    "Repair the database, or enlarge the pool.",
    "A database that is down:",
    worked(
      "task-given-back",
      () => ({ exactlyOnce: () => {} }),
      (stores) => {
        const { engine, mode } = stores.transactions;
        const unused = () => {};
        const faultOf = () => "unavailable";
        return {
          ...stores,
          transactions: {
            engine,
            mode,
            faultOf,
            run: lost,
            begin: unused,
            keep: unused,
            assertOpen: unused,
            free: unused,
            hold: unused,
          },
        };
      },
    ),
  ),
  "work-store-failed": notice(
    [...tasks, "createInbox"],
    "The table of work did not answer. No task was claimed, a lease was not renewed, or the end of an attempt was not written. The end is tried again, and told of, until another worker has the task: then it runs again.",
    "Repair the database. The worker goes on by itself.",
    "A database that is down:",
    worked(
      "work-store-failed",
      () => ({ atLeastOnce: fail }),
      (stores) => {
        const [add, claim, extend, finish, failTask, giveBack, advance, read] = Array(8).fill(lost);
        return {
          ...stores,
          work: {
            engine: "sqlite",
            mode: "sync",
            add,
            claim,
            extend,
            finish,
            fail: failTask,
            giveBack,
            advance,
            read,
          },
        };
      },
    ),
  ),
  "outcome-not-sent": notice(
    ["createOutcomes"],
    "An attempt to send the outcome of a payout failed, and another one follows.",
    "None, unless it is frequent: the message has the service's answer, and which option to look at.",
    "A service that is down:",
    whileWorking("outcome-not-sent", async ({ stores }) => {
      const outcomes = createOutcomes({ stores, url: await serviceAnswering(503), pollMs: 10 });
      await stores.transactions.run((tx) => outcomes.report(tx, settled));
      outcomes.start();
      return outcomes;
    }),
  ),
  "outcome-overdue": notice(
    ["createOutcomes"],
    "`expect()` has noted that an outcome is due, and `expectWithinMs` later it was not reported. It comes again after each `expectWithinMs` until it is.",
    "Find out what became of the payout, and report it. Look for what should have settled it: a worker, a message of the bank. `countersign outcomes list --queue outcomes-expected` shows what is due.",
    "A payout that nobody settles:",
    whileWorking("outcome-overdue", async ({ stores, pass }) => {
      const outcomes = createOutcomes({
        stores,
        url: "https://api.service.example/outcomes",
        expectWithinMs: 3_600_000,
        pollMs: 10,
      });
      await stores.transactions.run((tx) => outcomes.expect(tx, settled));
      pass(3_600_000);
      outcomes.start();
      return outcomes;
    }),
  ),
};
