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

export const wrongEnds: readonly WrongWork[] = [
  {
    does: "says that it has ended a task, and writes nothing",
    fails: "a task is done with what its transaction wrote",
    wrong: finishing(() => () => true),
  },
  {
    does: "ends a task whatever the transaction does",
    fails: "a task is done with what its transaction wrote",
    wrong: working(({ work, database }) => ({
      finish(tx, task) {
        const answer = work.finish(tx, task);
        // Behind the end of the transaction.
        void Promise.resolve().then(() => database.exec(`UPDATE ${tasks} SET state = 'done', ended_at = 1`));
        return answer;
      },
    })),
  },
  {
    does: "ends a task in front of the savepoint",
    fails: "after undo in the same transaction",
    wrong: finishing(({ work }) => (tx, task) => {
      tx.exec("RELEASE countersign");
      const answer = work.finish(tx, task);
      tx.exec("SAVEPOINT countersign");
      return answer;
    }),
  },
  {
    does: "tries again at once",
    fails: "after a failure the task waits",
    wrong: working(({ work }) => ({
      fail: (task, failure) => work.fail(task, { ...failure, retryInMs: failure.retryInMs && 0 }),
    })),
  },
  {
    does: "lets others overtake a task that has failed",
    fails: "after a failure the task waits",
    wrong: behind(
      "fail",
      `UPDATE ${tasks} SET number = 100 WHERE failures <> '[]'; UPDATE ${lanes} SET due_at = 0`,
    ),
  },
  {
    does: "never gives up",
    fails: "a task without another attempt is dead",
    wrong: working(({ work }) => ({
      fail: (task, failure) => work.fail(task, { ...failure, retryInMs: failure.retryInMs ?? 0 }),
    })),
  },
  {
    does: "stops an entity behind a dead task",
    fails: "a task without another attempt is dead",
    wrong: behind("fail", `UPDATE ${lanes} SET due_at = ${farOff}`),
  },
  {
    does: "keeps no failures",
    fails: "of many failures the newest 20",
    wrong: behind("fail", `UPDATE ${tasks} SET failures = '[]'`),
  },
  {
    does: "counts what is given back",
    fails: "what is given back does not count",
    wrong: working(({ work }) => ({
      async giveBack(given, retryInMs) {
        await Promise.all(given.map((task) => work.fail(task, { reason: "given back", retryInMs })));
      },
    })),
  },
  {
    does: "puts what is retried behind the others",
    fails: "retry makes dead tasks open",
    wrong: behind("retry", `UPDATE ${tasks} SET number = number + 100 WHERE failures <> '[]'`),
  },
  {
    does: "retries with the attempts of before",
    fails: "retry makes dead tasks open",
    wrong: behind("retry", `UPDATE ${tasks} SET attempts = 1 WHERE failures <> '[]'`),
  },
  {
    does: "retries whatever is dead",
    fails: "retry by time takes those",
    wrong: working(({ work }) => ({ retry: (queue) => work.retry(queue, { deadSinceMs: 0 }) })),
  },
  {
    does: "discards without a word",
    fails: "discard ends dead tasks",
    wrong: behind("discard", `UPDATE ${tasks} SET failures = '[]'`),
  },
  {
    does: "leaves discarded tasks dead",
    fails: "discard ends dead tasks",
    wrong: behind("discard", `UPDATE ${tasks} SET state = 'dead' WHERE state = 'done'`),
  },
  {
    does: "pauses nothing",
    fails: "a paused queue gives nobody a task",
    wrong: working(() => ({ async pause() {} })),
  },
  {
    does: "resumes what is not paused",
    fails: "a paused queue gives nobody a task",
    wrong: working(({ work }) => ({
      async resume(queue) {
        await work.resume(queue);
        return true;
      },
    })),
  },
  {
    does: "knows its own pauses alone",
    fails: "another store of the database",
    wrong: before("DELETE FROM countersign_queues"),
  },
  {
    does: "tells of queues in an order of its own",
    fails: "summaries tell of every queue",
    wrong: working(({ work }) => ({ summaries: async () => reversed(await work.summaries()) })),
  },
  {
    does: "keeps the first decision about a pause",
    fails: "summaries tell of every queue",
    wrong: working(({ work }) => ({
      async pause(queue, decision) {
        if ((await work.summaries()).every(({ paused }) => paused === undefined)) {
          await work.pause(queue, decision);
        }
      },
    })),
  },
  {
    does: "counts as running what nobody has any more",
    fails: "summaries count as running",
    wrong: working(({ work, database }) => ({
      async summaries() {
        const rows = database.prepare(`SELECT token FROM ${lanes} WHERE token IS NOT NULL`).all();
        return (await work.summaries()).map((summary) => ({ ...summary, running: rows.length }));
      },
    })),
  },
  {
    does: "prunes nothing",
    fails: "prune removes done tasks alone",
    wrong: working(() => ({ prune: async () => 0 })),
  },
  {
    does: "prunes what has just ended",
    fails: "prune removes done tasks alone",
    wrong: working(({ database }) => ({
      prune: async () => Number(database.prepare(`DELETE FROM ${tasks} WHERE state = 'done'`).run().changes),
    })),
  },
  {
    does: "lists tasks of all states",
    fails: "a list pages through the tasks",
    wrong: working(({ work }) => ({ list: ({ state: _state, ...query }) => work.list(query) })),
  },
  {
    does: "ends its list after a page",
    fails: "a list pages through the tasks",
    wrong: working(({ work }) => ({
      list: async (query) => ({ ...(await work.list(query)), cursor: undefined }),
    })),
  },
  {
    does: "counts how many it has listed",
    fails: "a page begins after the one before",
    wrong: working(({ work }) => ({
      async list({ cursor = "0", limit, ...query }) {
        const { tasks: all } = await work.list({ ...query, limit: 1_000 });
        const end = Number(cursor) + limit;
        return { tasks: all.slice(Number(cursor), end), cursor: end < all.length ? String(end) : undefined };
      },
    })),
  },
  {
    does: "begins anew at a damaged cursor",
    fails: "a damaged cursor",
    wrong: working(({ work }) => ({
      list: (query) => work.list(query).catch(() => work.list({ ...query, cursor: undefined })),
    })),
  },
  {
    does: "keeps times as floating-point numbers",
    fails: "advance writes a time",
    wrong: working(({ work }) => ({
      advance: (tx, mark) => work.advance(tx, { ...mark, at: BigInt(Number(mark.at)) }),
    })),
  },
  {
    does: "cuts bodies at a NUL",
    fails: "hostile ids, entities and bodies",
    wrong: adding((task) => ({ ...task, body: task.body.split("\0")[0] ?? "" })),
  },
  {
    does: "trims reasons",
    fails: "hostile tokens, reasons, decisions",
    wrong: working(({ work }) => ({
      fail: (task, failure) => work.fail(task, { ...failure, reason: failure.reason.trim() }),
    })),
  },
  {
    does: "keeps 64 KiB of a body",
    fails: "a body of 1 MiB",
    wrong: adding((task) => ({ ...task, body: task.body.slice(0, 65_535) })),
  },
  {
    does: "looks at no lease",
    fails: "unfit arguments are a TypeError",
    wrong: working(() => ({ extend: async () => [] })),
  },
  {
    does: "tells each adder that it has added",
    fails: "of adders of one id at once",
    wrong: working(({ work }) => ({
      add: (tx, queue, given) => answerAtOnce(work.add(tx, queue, given)).map(() => ({ status: "added" })),
    })),
  },
  {
    does: "gives one task to several workers",
    fails: "workers side by side",
    wrong: behind("claim", `UPDATE ${lanes} SET due_at = 0`),
  },
];
