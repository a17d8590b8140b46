// Stores that end tasks, or serve operators, wrongly.
import {
  farOff,
  type WrongWork,
  adding,
  before,
  behind,
  finishing,
  lanes,
  answerAtOnce,
  reversed,
  tasks,
  working,
} from "./work-kit.ts";

export const wrongEnds: WrongWork = {
  "a task is done with what its transaction wrote": {
    "says that it has ended a task, and writes nothing": finishing(() => () => true),
    "ends a task whatever the transaction does": working(({ work, database }) => ({
      finish(tx, task) {
        const answer = work.finish(tx, task);
        // Behind the end of the transaction.
        void Promise.resolve().then(() => database.exec(`UPDATE ${tasks} SET state = 'done', ended_us = 1`));
        return answer;
      },
    })),
  },
  "after a failure behind it in the same transaction": {
    "ends a task outside of the transaction": finishing(({ work, database }) => (tx, task) => {
      database.exec("ROLLBACK; BEGIN");
      const answer = work.finish(tx, task);
      database.exec("COMMIT; BEGIN; SAVEPOINT countersign");
      return answer;
    }),
  },
  "after a failure the task waits": {
    "tries again at once": working(({ work }) => ({
      fail: (task, failure) => work.fail(task, { ...failure, retryInMs: failure.retryInMs && 0 }),
    })),
    "lets others overtake a task that has failed": behind(
      "fail",
      `UPDATE ${tasks} SET number = ${farOff} WHERE failures <> '[]'; UPDATE ${lanes} SET due_us = 0`,
    ),
  },
  "a task without another attempt is dead": {
    "never gives up": working(({ work }) => ({
      fail: (task, failure) => work.fail(task, { ...failure, retryInMs: failure.retryInMs ?? 0 }),
    })),
    "stops an entity behind a dead task": behind("fail", `UPDATE ${lanes} SET due_us = ${farOff}`),
  },
  "of many failures the newest 20": {
    "keeps no failures": behind("fail", `UPDATE ${tasks} SET failures = '[]'`),
  },
  "what is given back does not count": {
    "counts what is given back": working(({ work }) => ({
      async giveBack(given, retryInMs) {
        await Promise.all(given.map((task) => work.fail(task, { reason: "given back", retryInMs })));
      },
    })),
  },
  "retry makes dead tasks open": {
    "puts what is retried behind the others": behind(
      "retry",
      `UPDATE ${tasks} SET number = ${farOff} WHERE failures <> '[]'`,
    ),
    "retries with the attempts of before": behind(
      "retry",
      `UPDATE ${tasks} SET attempts = 1 WHERE failures <> '[]'`,
    ),
  },
  "retry by time takes those": {
    "retries whatever is dead": working(({ work }) => ({
      retry: (queue) => work.retry(queue, { deadSinceMs: 0 }),
    })),
  },
  "discard ends dead tasks": {
    "discards without a word": behind("discard", `UPDATE ${tasks} SET failures = '[]'`),
    "leaves discarded tasks dead": behind(
      "discard",
      `UPDATE ${tasks} SET state = 'dead' WHERE state = 'done'`,
    ),
  },
  "a paused queue gives nobody a task": {
    "pauses nothing": working(() => ({ async pause() {} })),
    "resumes what is not paused": working(({ work }) => ({
      async resume(queue) {
        await work.resume(queue);
        return true;
      },
    })),
  },
  "another store of the database": {
    "knows its own pauses alone": before("DELETE FROM countersign_queues"),
  },
  "summaries tell of every queue": {
    "tells of queues in an order of its own": working(({ work }) => ({
      summaries: async () => reversed(await work.summaries()),
    })),
    "keeps the first decision about a pause": working(({ work }) => ({
      async pause(queue, decision) {
        if ((await work.summaries()).every(({ paused }) => paused === undefined)) {
          await work.pause(queue, decision);
        }
      },
    })),
  },
  "summaries count as running": {
    "counts as running what nobody has any more": working(({ work, database }) => ({
      async summaries() {
        const rows = database.prepare(`SELECT token FROM ${lanes} WHERE token IS NOT NULL`).all();
        return (await work.summaries()).map((summary) => ({ ...summary, running: rows.length }));
      },
    })),
  },
  "prune removes done tasks alone": {
    "prunes nothing": working(() => ({ prune: async () => 0 })),
    "prunes what has just ended": working(({ database }) => ({
      prune: async () => Number(database.prepare(`DELETE FROM ${tasks} WHERE state = 'done'`).run().changes),
    })),
  },
  "a list pages through the tasks": {
    "lists tasks of all states": working(({ work }) => ({
      list: ({ state: _state, ...query }) => work.list(query),
    })),
    "ends its list after a page": working(({ work }) => ({
      list: async (query) => ({ ...(await work.list(query)), cursor: undefined }),
    })),
  },
  "a page begins after the one before": {
    "counts how many it has listed": working(({ work }) => ({
      async list({ cursor = "0", limit, ...query }) {
        const { tasks: all } = await work.list({ ...query, limit: 1_000 });
        const end = Number(cursor) + limit;
        return { tasks: all.slice(Number(cursor), end), cursor: end < all.length ? String(end) : undefined };
      },
    })),
  },
  "a damaged cursor": {
    "begins anew at a damaged cursor": working(({ work }) => ({
      list: (query) => work.list(query).catch(() => work.list({ ...query, cursor: undefined })),
    })),
  },
  "advance writes a time": {
    "keeps times as floating-point numbers": working(({ work }) => ({
      advance: (tx, mark) => work.advance(tx, { ...mark, at: BigInt(Number(mark.at)) }),
    })),
  },
  "hostile ids, entities and bodies": {
    "cuts bodies at a NUL": adding((task) => ({ ...task, body: task.body.split("\0")[0] ?? "" })),
  },
  "hostile tokens, reasons, decisions": {
    "trims reasons": working(({ work }) => ({
      fail: (task, failure) => work.fail(task, { ...failure, reason: failure.reason.trim() }),
    })),
  },
  "a body of 1 MiB": {
    "keeps 64 KiB of a body": adding((task) => ({ ...task, body: task.body.slice(0, 65_535) })),
  },
  "unfit arguments are a TypeError": {
    "looks at no lease": working(() => ({ extend: async () => [] })),
  },
  "of adders of one id at once": {
    "tells each adder that it has added": working(({ work }) => ({
      add: (tx, queue, given) => answerAtOnce(work.add(tx, queue, given)).map(() => ({ status: "added" })),
    })),
  },
  "workers side by side": {
    "gives one task to several workers": behind(
      "claim",
      `UPDATE ${lanes} SET due_us = 0, token = NULL, task = NULL`,
    ),
  },
};
