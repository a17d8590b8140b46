// Stores that add, claim or own tasks wrongly.
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

export const wrongWork: readonly WrongWork[] = [
  {
    does: "commits what it adds by itself",
    fails: "tasks commit with what their transaction wrote",
    wrong: working(({ work }) => ({
      add(tx, queue, given) {
        const answers = work.add(tx, queue, given);
        tx.exec("COMMIT; BEGIN IMMEDIATE");
        return answers;
      },
    })),
  },
  {
    does: "forgets what is done",
    fails: "a known id is answered with its body",
    wrong: working(({ work }) => ({
      add(tx, queue, given) {
        tx.exec(`DELETE FROM ${tasks} WHERE state = 'done'`);
        return work.add(tx, queue, given);
      },
    })),
  },
  {
    does: "answers a known id with the body that was given",
    fails: "a known id is answered with its body",
    wrong: working(({ work }) => ({
      add: (tx, queue, given) =>
        answerAtOnce(work.add(tx, queue, given)).map((answer, index) => ({
          ...answer,
          body: given[index]?.body ?? "",
        })),
    })),
  },
  {
    does: "answers in an order of its own",
    fails: "of several tasks each is answered for itself",
    wrong: working(({ work }) => ({ add: (...given) => reversed(answerAtOnce(work.add(...given))) })),
  },
  {
    does: "adds the last one first",
    fails: "tasks of an entity run one after another",
    wrong: working(({ work }) => ({
      add: (tx, queue, given) => reversed(answerAtOnce(work.add(tx, queue, reversed(given)))),
    })),
  },
  {
    does: "knows no entities",
    fails: "tasks of an entity run one after another",
    wrong: adding((task) => ({ ...task, entity: undefined })),
  },
  {
    does: "takes all tasks for those of one entity",
    fails: "entities run side by side",
    wrong: adding((task) => ({ ...task, entity: "one" })),
  },
  {
    does: "takes an id for an entity",
    fails: "entities run side by side",
    wrong: adding((task) => ({ ...task, entity: task.entity ?? task.id })),
  },
  {
    does: "has one queue",
    fails: "entities run side by side",
    wrong: working(({ work }) => ({ add: (tx, _queue, given) => work.add(tx, "reports", given) })),
  },
  {
    does: "knows no delay",
    fails: "a delayed task is not due before its time",
    wrong: adding((task) => ({ ...task, delayMs: 0 })),
  },
  {
    does: "lets others overtake a delayed task",
    fails: "a delayed task is not due before its time",
    wrong: adding((task) => (task.delayMs === undefined ? task : { ...task, entity: undefined })),
  },
  {
    does: "forgets the delay behind another task",
    fails: "a delayed task after another one",
    wrong: finishing(({ work }) => (tx, task) => {
      const answer = work.finish(tx, task);
      tx.exec(`UPDATE ${lanes} SET due_at = 0`);
      return answer;
    }),
  },
  {
    does: "claims more than its limit",
    fails: "a claim takes tasks up to its limit",
    wrong: working(({ work }) => ({ claim: (claim) => work.claim({ ...claim, limit: 100 }) })),
  },
  {
    does: "claims what has been due for the shortest time",
    fails: "a claim takes tasks up to its limit",
    wrong: working(({ work, database }) => ({
      async claim(claim) {
        database.exec(`UPDATE ${lanes} SET due_at = -due_at WHERE token IS NULL`);
        const claimed = await work.claim(claim);
        database.exec(`UPDATE ${lanes} SET due_at = -due_at WHERE due_at < 0`);
        return claimed;
      },
    })),
  },
  {
    does: "counts no attempt before its end",
    fails: "a claim takes tasks up to its limit",
    wrong: behind("claim", `UPDATE ${tasks} SET attempts = 0`),
  },
  {
    does: "waits for a silent owner for ever",
    fails: "a task whose owner fell silent",
    wrong: before(`UPDATE ${lanes} SET due_at = ${farOff} WHERE token IS NOT NULL`),
  },
  {
    does: "forgets the attempt of a silent owner",
    fails: "a task whose owner fell silent",
    wrong: behind("claim", `UPDATE ${tasks} SET failures = '[]'`),
  },
  {
    does: "lets anybody end a task",
    fails: "a task whose owner fell silent",
    wrong: finishing(({ work }) => (tx, task) => {
      tx.prepare(`UPDATE ${lanes} SET token = ? WHERE token IS NOT NULL`).run(task.token);
      return work.finish(tx, task);
    }),
  },
  {
    does: "extends for a millisecond",
    fails: "extend keeps tasks",
    wrong: working(({ work }) => ({ extend: (given) => work.extend(given, 1) })),
  },
  {
    does: "tells of each task that it is extended",
    fails: "extend keeps tasks",
    wrong: working(({ work }) => ({
      async extend(given, leaseMs) {
        await work.extend(given, leaseMs);
        return given.map(({ id }) => id);
      },
    })),
  },
  {
    does: "takes a late owner for none",
    fails: "an owner that is late",
    wrong: working(({ work, database, now }) => ({
      extend(given, leaseMs) {
        database.exec(`UPDATE ${lanes} SET token = 'nobody' WHERE due_at <= ${now()}`);
        return work.extend(given, leaseMs);
      },
    })),
  },
  {
    does: "takes a token for that of all tasks of the entity",
    fails: "a token ends what it owns",
    wrong: finishing(({ work }) => (tx, task) => {
      const owned = `SELECT number FROM ${tasks} WHERE id = ?`;
      tx.prepare(`UPDATE ${lanes} SET owned = (${owned}) WHERE token = ?`).run(task.id, task.token);
      return work.finish(tx, task);
    }),
  },
  {
    does: "takes the oldest task of an entity for the owned one",
    fails: "a dead task that is retried waits for the owner",
    wrong: finishing(({ work }) => (tx, task) => {
      const oldest = `SELECT min(number) FROM ${tasks} AS task WHERE state = 'open' AND task.lane = ${lanes}.lane`;
      tx.exec(`UPDATE ${lanes} SET owned = (${oldest}) WHERE token IS NOT NULL`);
      return work.finish(tx, task);
    }),
  },
  {
    does: "lets others have the entity of an owned task after a retry",
    fails: "a dead task that is retried waits for the owner",
    wrong: behind("retry", `UPDATE ${lanes} SET token = NULL, owned = NULL`),
  },
  {
    does: "lets the entity wait for a later task that has failed",
    fails: "a dead task that is retried waits for no pause",
    wrong: behind(
      "fail",
      `UPDATE ${lanes} SET due_at = (SELECT max(due_at) FROM ${tasks} AS task WHERE state = 'open' AND task.lane = ${lanes}.lane)`,
    ),
  },
];
