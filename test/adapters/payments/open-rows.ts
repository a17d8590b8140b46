import type { PaymentRow, Stage } from "./stage.ts";
import type { EngineName } from "./engines.ts";

const asynchronous: readonly EngineName[] = ["postgresql", "mariadb"];
const everywhere: readonly EngineName[] = [...asynchronous, "sqlite"];
const short = () => ({ idempotency: { waitMs: 30, storeTimeoutMs: 5_000 } });

/** Once the request waits for the other transaction, that one ends. */
async function endsOther({ tables, settle }: Stage): Promise<void> {
  await tables.untilBlocked();
  await settle?.();
}

/** Payments beside others that are open, in this process or another. */
const waits: readonly PaymentRow[] = [
  {
    title: "a nonce of an open transaction, which commits",
    arrange: (stage) => stage.another({ nonce: stage.nonce }, "commit"),
    meanwhile: endsOther,
    answers: ["401 nonce-replayed"],
    key: "free",
    paid: 0,
  },
  {
    title: "a nonce of an open transaction, which is rolled back",
    arrange: (stage) => stage.another({ nonce: stage.nonce }, "rollback"),
    meanwhile: endsOther,
    answers: ["200"],
    key: "done",
    paid: 1,
  },
  {
    title: "a key of an open transaction, which commits",
    arrange: (stage) => stage.another({ key: stage.key }, "commit"),
    meanwhile: endsOther,
    answers: ["409 already-processed"],
    key: "done",
    paid: 0,
  },
  {
    title: "a key of an open transaction, which is rolled back",
    arrange: (stage) => stage.another({ key: stage.key }, "rollback"),
    meanwhile: endsOther,
    answers: ["200"],
    key: "done",
    paid: 1,
  },
  {
    title: "a key of a transaction that stays open: the nonce goes with the transaction",
    arrange: (stage) => stage.another({ key: stage.key }, "rollback"),
    options: short,
    answers: ["503 in-flight"],
    nonce: "fresh",
    key: "free",
    paid: 0,
  },
];

function together(ends: "commits" | "rolls back" | "stays open"): PaymentRow {
  const answers = {
    commits: ["409 already-processed"],
    "rolls back": ["200"],
    "stays open": ["503 in-flight"],
  };
  return {
    title: `a duplicate in the process of the first, which ${ends}`,
    options: (stage) => ({
      ...(ends === "stays open" && short()),
      findBusiness() {
        stage.questions += 1;
        if (stage.questions === 2) stage.asked.resolve();
        return true;
      },
    }),
    async arrange(stage) {
      stage.beside = stage.sendBeside?.();
      await stage.begun;
    },
    pay: ({ call, writeThen, stage }) =>
      call > 1
        ? writeThen(() => undefined)
        : writeThen(async () => {
            await stage.gate.promise;
            if (ends === "rolls back") throw new Error("the first fails");
          }),
    async meanwhile({ asked, gate }) {
      await asked.promise;
      if (ends !== "stays open") gate.resolve();
    },
    async afterwards({ gate, beside }) {
      gate.resolve();
      await beside;
    },
    answers: answers[ends],
    nonce: ends === "stays open" ? "fresh" : "seen",
    key: "done",
    paid: 1,
    ran: ends === "rolls back" ? 2 : 1,
  };
}

/** As after `ALTER DATABASE`: of the process's one connection. */
async function setReadOnly({ stores, tables }: Stage, value: "off" | "on"): Promise<void> {
  await stores.transactions.run(async (tx) => {
    await tables.sql(tx, `SET default_transaction_read_only = ${value}`);
  });
}

/** What others, the server or the line do to a payment. */
const faults: readonly PaymentRow[] = [
  {
    title: "conflicts three times, then none",
    on: everywhere,
    pay: ({ call, tx, writeThen, stage: { tables } }) =>
      writeThen(() => (call <= 3 ? tables.conflict(tx, call) : undefined)),
    answers: ["200"],
    key: "done",
    paid: 1,
    ran: 4,
  },
  {
    title: "a conflict each time: ten times, then 503",
    on: everywhere,
    pay: ({ tx, writeThen, stage: { tables } }) => writeThen(() => tables.conflict(tx, 0)),
    answers: ["503 transaction-conflict"],
    nonce: "fresh",
    key: "free",
    paid: 0,
    ran: 10,
  },
  {
    title: "a write conflict of serializable transactions",
    engineAlone: true,
    on: ["postgresql"],
    process: () => ({ isolation: "serializable" }),
    arrange: ({ tables }) => tables.alone("INSERT INTO payments VALUES ('balance 1')"),
    async pay({ call, sql, write, stage: { tables } }) {
      await sql("SELECT * FROM payments");
      if (call === 1) await tables.alone("UPDATE payments SET id = 'balance 2' WHERE id = 'balance 1'");
      await sql("UPDATE payments SET id = 'balance 3' WHERE id LIKE 'balance%'");
      await write();
    },
    answers: ["200"],
    key: "done",
    paid: 1,
    ran: 2,
  },
  {
    title: "a session that has become read only",
    engineAlone: true,
    on: ["postgresql"],
    process: () => ({ connections: 1 }),
    arrange: (stage) => setReadOnly(stage, "on"),
    answers: ["503 transaction-unavailable"],
    afterwards: (stage) => setReadOnly(stage, "off"),
    nonce: "fresh",
    key: "free",
    paid: 0,
  },
  {
    title: "a lost reply to COMMIT: the retry finds the key done",
    process: (stage) => ({
      wrap(database) {
        let isLost = false;
        return {
          ...database,
          async run(work) {
            const result = await database.run(work);
            if (isLost || stage.calls === 0) return result;
            isLost = true;
            throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
          },
        };
      },
    }),
    sends: ["new", "new"],
    answers: ["503 commit-unknown", "409 already-processed"],
    key: "done",
    paid: 1,
  },
  {
    title: "a line that ends before COMMIT: the retry pays",
    pay: ({ call, writeThen, sql, stage }) =>
      writeThen(() => (call === 1 ? sql(stage.tables.suicide) : undefined)),
    sends: ["new", "new"],
    answers: ["503 transaction-unavailable", "200"],
    nonce: "fresh",
    key: "done",
    paid: 1,
    ran: 2,
  },
  {
    title: "a line that ends unseen before COMMIT: the retry pays",
    pay: ({ call, writeThen, tx, stage: { tables } }) =>
      writeThen(() => (call === 1 ? tables.kill(tx) : undefined)),
    sends: ["new", "new"],
    answers: ["503 transaction-unavailable", "200"],
    nonce: "fresh",
    key: "done",
    paid: 1,
    ran: 2,
  },
];

/** Of engines whose transactions stay open, and of their lines. */
export const openRows: readonly PaymentRow[] = [
  ...waits,
  ...(["commits", "rolls back", "stays open"] as const).map(together),
  ...faults,
].map((row): PaymentRow => ({ on: asynchronous, ...row }));
