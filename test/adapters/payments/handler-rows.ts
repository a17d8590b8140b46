import { GuardError } from "@countersign/core";
import { after, swallow } from "./engines.ts";
import type { PaymentRow } from "./stage.ts";

export const replayed = "401 nonce-replayed";
const free = { key: "free", paid: 0 } as const;

export const fail = (): never => {
  throw new Error("the platform failed");
};

/** What `fetch` throws of a host that is down. */
const fetchFailed = (): never => {
  const cause = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), { code: "ECONNREFUSED" });
  throw new TypeError("fetch failed", { cause });
};

const broken = "500 transaction-broken";

/** A refusal with any status, as one is that the app's code has written itself. */
export function refusalWith(status: number): GuardError {
  const error = new GuardError({ status: 422, code: "already-there", message: "the row is there" });
  return Object.assign(error, { status });
}

/** Handlers that end, break or misunderstand their transaction. */
export const handlerRows: readonly PaymentRow[] = [
  ...(
    [
      ["ROLLBACK", "held", ["postgresql", "sqlite", "mariadb"]],
      ["COMMIT", "held", ["postgresql", "sqlite", "mariadb"]],
    ] as const
  ).map(([text, key, on]): PaymentRow => ({
    title: `a handler's own ${text}, past its tx: the key is ${key}`,
    on,
    pay: ({ writeThen, past }) => writeThen(() => past(text)),
    sends: ["new", "new"],
    answers: [broken, "503 held"],
    key,
    paid: text === "COMMIT" ? 1 : 0,
    ran: 1,
  })),
  ...(["ROLLBACK", "COMMIT", "/* why */ commit;", "BEGIN", "RELEASE SAVEPOINT countersign"] as const).map(
    (text): PaymentRow => ({
      title: `a handler that sends ${text} by its tx: nothing is paid, and the key is free`,
      pay: ({ call, write, writeThen, sql }) =>
        writeThen(() => (call === 1 ? after(sql(text), write) : undefined)),
      sends: ["new", "again", "new"],
      answers: ["500", replayed, "200"],
      key: "done",
      paid: 1,
      ran: 2,
    }),
  ),
  {
    title: "a handler that swallows the refusal of its COMMIT: it is paid",
    pay: ({ writeThen, sql }) => writeThen(() => swallow(() => sql("COMMIT"))),
    sends: ["new", "again", "new"],
    answers: ["200", replayed, "409 already-processed"],
    key: "done",
    paid: 1,
  },
  {
    title:
      "a handler that changes a table's definition by its tx on MariaDB: nothing is paid, and the key is free",
    on: ["mariadb"],
    pay: ({ call, writeThen, sql }) =>
      writeThen(() => (call === 1 ? sql("CREATE TABLE meanwhile (id INT)") : undefined)),
    sends: ["new", "again", "new"],
    answers: ["500", replayed, "200"],
    key: "done",
    paid: 1,
    ran: 2,
  },
  {
    title: "a handler's own ROLLBACK on MariaDB, which begins the next transaction: nothing of it commits",
    on: ["mariadb"],
    pay: ({ write, writeThen, past }) => writeThen(() => after(past("ROLLBACK"), write)),
    sends: ["new", "again", "new"],
    answers: [broken, replayed, "503 held"],
    key: "held",
    paid: 0,
    ran: 1,
  },
  ...(["COMMIT", "CREATE TABLE meanwhile (id INT)"] as const).flatMap((commits): PaymentRow[] => {
    const behindRollback: Omit<PaymentRow, "paid"> = {
      title: `a handler that pays behind its own ROLLBACK, then ${commits}: the key is held`,
      pay: ({ write, writeThen, past }) =>
        writeThen(() => after(after(past("ROLLBACK"), write), () => swallow(() => past(commits)))),
      sends: ["new", "again", "new"],
      answers: [broken, replayed, "503 held"],
      key: "held",
    };
    return [
      { ...behindRollback, on: ["postgresql", "sqlite"], paid: 1 },
      // There the session takes no write behind its transaction.
      {
        ...behindRollback,
        title: `${behindRollback.title}, and nothing is paid`,
        on: ["mariadb"],
        paid: 0,
        ran: 1,
      },
    ];
  }),
  {
    title: "a handler that swallows a deadlock, pays and commits by itself: the key is held",
    on: ["mariadb"],
    pay: ({ tx, write, past, stage: { tables } }) =>
      after(after(tables.loseDeadlock(tx), write), () => past("COMMIT")),
    sends: ["new", "again", "new"],
    answers: [broken, replayed, "503 held"],
    key: "held",
    paid: 1,
  },
  {
    title: "a handler that asks somebody who is down: not the database, whose line lives",
    pay: ({ call, writeThen }) => writeThen(() => call > 1 || fetchFailed()),
    sends: ["new", "again", "new"],
    answers: ["500", replayed, "200"],
    key: "done",
    paid: 1,
    ran: 2,
  },
  {
    title: "a handler that asks somebody who is down while its own line is lost: the retry pays",
    on: ["postgresql", "mariadb"],
    pay: ({ call, writeThen, tx, stage: { tables } }) =>
      writeThen(() => (call === 1 ? after(tables.kill(tx), fetchFailed) : undefined)),
    sends: ["new", "new"],
    answers: ["503 transaction-unavailable", "200"],
    nonce: "fresh",
    key: "done",
    paid: 1,
    ran: 2,
  },
  {
    title: "a handler that swallows an error of its statement",
    on: ["postgresql"],
    pay: ({ call, writeThen, sql, stage }) =>
      writeThen(() => (call === 1 ? swallow(() => sql(stage.tables.breaking)) : undefined)),
    sends: ["new", "again", "new"],
    answers: [broken, replayed, "200"],
    key: "done",
    paid: 1,
    ran: 2,
  },
  {
    title: "a handler that swallows an error by which SQLite rolled back: the key is held",
    on: ["sqlite"],
    pay: ({ writeThen, sql, stage }) => writeThen(() => swallow(() => sql(stage.tables.breaking))),
    sends: ["new", "new"],
    answers: [broken, "503 held"],
    key: "held",
    nonce: "seen",
    paid: 0,
    ran: 1,
  },
  {
    title: "a deferred constraint, refused at COMMIT",
    on: ["postgresql", "sqlite"],
    pay: ({ call, writeThen, sql, stage: { tables } }) =>
      writeThen(() => (call === 1 ? sql(tables.late) : undefined)),
    sends: ["new", "again", "new"],
    answers: ["500", replayed, "200"],
    key: "done",
    paid: 1,
    ran: 2,
  },
  ...[409, 200, 302].map((status): PaymentRow => ({
    title: `a handler that throws a refusal with ${status}: nobody has paid`,
    pay: ({ call, writeThen }) =>
      writeThen(() => {
        if (call === 1) throw refusalWith(status);
      }),
    sends: ["new", "again", "new"],
    answers: ["500 handler-answered-409", replayed, "200"],
    key: "done",
    paid: 1,
    ran: 2,
  })),
  {
    title: "a handler that ends its transaction and throws a refusal with 409: the key is held",
    on: ["postgresql", "sqlite"],
    pay: ({ writeThen, past }) =>
      writeThen(() =>
        after(past("ROLLBACK"), () => {
          throw refusalWith(409);
        }),
      ),
    sends: ["new", "again", "new"],
    answers: ["500 transaction-broken", replayed, "503 held"],
    key: "held",
    paid: 0,
    ran: 1,
  },
  {
    title: "hold() in a transaction",
    pay: ({ writeThen, context }) => writeThen(() => context.hold("why")),
    answers: ["500"],
    ran: 1,
    ...free,
  },
  {
    title: "a handler that returns a promise on SQLite: what it does later is unknown, and the key is held",
    on: ["sqlite"],
    pay: ({ writeThen }) => writeThen(() => Promise.reject(new Error("nobody's"))),
    sends: ["new", "again"],
    answers: ["500", replayed],
    key: "held",
    paid: 0,
    ran: 1,
  },
  ...[200, 204, 409].map((appStatus): PaymentRow => ({
    title: `an app that answers ${appStatus} to what nobody has paid`,
    appStatus,
    pay: ({ writeThen }) => writeThen(fail),
    answers: ["500"],
    ran: 1,
    ...free,
  })),
];
