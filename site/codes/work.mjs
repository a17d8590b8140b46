// Tasks that commit with what caused them, and the outcomes of payouts.
import { createServer } from "node:http";
import { once } from "node:events";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createOutcomes } from "countersign/outcomes";
import { createStores } from "@countersign/store-sql";
import { createTaskQueue } from "@countersign/idempotency/work";
import Database from "libsql";
import { noticed, refusalOf } from "./provoke.mjs";

const queue = "letters";
const lost = () => Promise.reject(new Error("Connection terminated unexpectedly"));
const fail = () => {
  throw new Error("no such printer");
};

function openStores() {
  let nowMs = 1_800_000_000_000;
  const stores = createStores({
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
  "outcome-differs": () =>
    refusalOf("createOutcomes", () => {
      const { stores } = openStores();
      const outcomes = createOutcomes({ stores, url: "https://api.service.example/outcomes" });
      return stores.transactions.run((tx) => {
        outcomes.report(tx, settled);
        outcomes.report(tx, { ...settled, status: "FAILED", reason: "account closed" });
      });
    }),
};

export const noticesOfWork = {
  "task-failed": worked("task-failed", () => ({ atLeastOnce: fail })),
  "task-dead": worked("task-dead", () => ({ atLeastOnce: fail, maxAttempts: 1 })),
  "task-gone": worked("task-gone", ({ stores, pass }) => ({
    async atLeastOnce() {
      pass(60_000);
      await stores.work.claim({ queue, limit: 1, token: "another", leaseMs: 60_000 });
    },
  })),
  "task-given-back": worked(
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
  "work-store-failed": worked(
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
  "outcome-not-sent": whileWorking("outcome-not-sent", async ({ stores }) => {
    const outcomes = createOutcomes({ stores, url: await serviceAnswering(503), pollMs: 10 });
    await stores.transactions.run((tx) => outcomes.report(tx, settled));
    outcomes.start();
    return outcomes;
  }),
  "outcome-overdue": whileWorking("outcome-overdue", async ({ stores, pass }) => {
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
};
