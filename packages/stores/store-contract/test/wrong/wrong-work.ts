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

export const wrongWork: WrongWork = {
  "tasks commit with what their transaction wrote": {
    "commits what it adds by itself": working(({ work, database }) => ({
      add(tx, queue, given) {
        const answers = work.add(tx, queue, given);
        database.exec("COMMIT; BEGIN IMMEDIATE");
        return answers;
      },
    })),
  },
  "a known id is answered with its body": {
    "forgets what is done": working(({ work }) => ({
      add(tx, queue, given) {
        tx.exec(`DELETE FROM ${tasks} WHERE state = 'done'`);
        return work.add(tx, queue, given);
      },
    })),
    "answers a known id with the body that was given": working(({ work }) => ({
      add: (tx, queue, given) =>
        answerAtOnce(work.add(tx, queue, given)).map((answer, index) => ({
          ...answer,
          body: given[index]?.body ?? "",
        })),
    })),
  },
  "of several tasks each is answered for itself": {
    "answers in an order of its own": working(({ work }) => ({
      add: (...given) => reversed(answerAtOnce(work.add(...given))),
    })),
  },
  "tasks of an entity run one after another": {
    "adds the last one first": working(({ work }) => ({
      add: (tx, queue, given) => reversed(answerAtOnce(work.add(tx, queue, reversed(given)))),
    })),
    "knows no entities": adding((task) => ({ ...task, entity: undefined })),
  },
  "entities run side by side": {
    "takes all tasks for those of one entity": adding((task) => ({ ...task, entity: "one" })),
    "takes an id for an entity": adding((task) => ({ ...task, entity: task.entity ?? task.id })),
    "has one queue": working(({ work }) => ({ add: (tx, _queue, given) => work.add(tx, "reports", given) })),
  },
  "a delayed task is not due before its time": {
    "knows no delay": adding((task) => ({ ...task, delayMs: 0 })),
    "lets others overtake a delayed task": adding((task) =>
      task.delayMs === undefined ? task : { ...task, entity: undefined },
    ),
  },
  "a delayed task after another one": {
    "forgets the delay behind another task": finishing(({ work }) => (tx, task) => {
      const answer = work.finish(tx, task);
      tx.exec(`UPDATE ${tasks} SET due_us = 0`);
      return answer;
    }),
  },
  "a claim takes tasks up to its limit": {
    "claims more than its limit": working(({ work }) => ({
      claim: (claim) => work.claim({ ...claim, limit: 100 }),
    })),
    "claims what has been due for the shortest time": working(({ work, database, now }) => ({
      async claim(claim) {
        const reverse = `UPDATE ${lanes} SET due_us = ${now() * 1_000} - due_us WHERE token IS NULL`;
        database.exec(reverse);
        const claimed = await work.claim(claim);
        database.exec(reverse);
        return claimed;
      },
    })),
    "counts no attempt before its end": behind("claim", `UPDATE ${tasks} SET attempts = 0`),
  },
  "a task whose owner fell silent": {
    "waits for a silent owner for ever": before(
      `UPDATE ${lanes} SET due_us = ${farOff} WHERE token IS NOT NULL`,
    ),
    "forgets the attempt of a silent owner": behind("claim", `UPDATE ${tasks} SET failures = '[]'`),
    "lets anybody end a task": finishing(({ work }) => (tx, task) => {
      tx.prepare(`UPDATE ${lanes} SET token = ? WHERE token IS NOT NULL`).run(task.token);
      return work.finish(tx, task);
    }),
  },
  "extend keeps tasks": {
    "extends for a millisecond": working(({ work }) => ({ extend: (given) => work.extend(given, 1) })),
    "tells of each task that it is extended": working(({ work }) => ({
      async extend(given, leaseMs) {
        await work.extend(given, leaseMs);
        return given.map(({ id }) => id);
      },
    })),
  },
  "an owner that is late": {
    "takes a late owner for none": working(({ work, database, now }) => ({
      extend(given, leaseMs) {
        database.exec(`UPDATE ${tasks} SET token = 'nobody' WHERE leased_us <= ${now() * 1_000}`);
        return work.extend(given, leaseMs);
      },
    })),
  },
  "a token ends what it owns": {
    "takes a token for that of all tasks of the entity": finishing(({ work }) => (tx, task) => {
      const owned = `SELECT digest FROM ${tasks} WHERE id = ?`;
      tx.prepare(`UPDATE ${lanes} SET task = (${owned}) WHERE token = ?`).run(task.id, task.token);
      return work.finish(tx, task);
    }),
  },
  "a dead task that is retried waits for the owner": {
    "takes the oldest task of an entity for the owned one": finishing(({ work }) => (tx, task) => {
      const oldest = `SELECT digest FROM ${tasks} AS task WHERE state = 'open' AND task.lane = ${lanes}.digest ORDER BY number LIMIT 1`;
      tx.exec(`UPDATE ${lanes} SET task = (${oldest}) WHERE token IS NOT NULL`);
      return work.finish(tx, task);
    }),
    "lets others have the entity of an owned task after a retry": behind(
      "retry",
      `UPDATE ${lanes} SET token = NULL, task = NULL`,
    ),
  },
  "a dead task that is retried waits for no pause": {
    "lets the entity wait for a later task that has failed": behind(
      "fail",
      `UPDATE ${lanes} SET due_us = (SELECT max(due_us) FROM ${tasks} AS task WHERE state = 'open' AND task.lane = ${lanes}.digest)`,
    ),
  },
};
