import { deferred, type PaymentRow, type Stage } from "./stage.ts";
import type { EngineName } from "./engines.ts";
import { sleep } from "../../support/runs/eventually.ts";

const asynchronous: readonly EngineName[] = ["postgresql", "mariadb"];
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
    pay: ({ call, writeThen, sql, stage: { tables } }) =>
      writeThen(() => (call <= 3 ? sql(tables.conflicts[call % 2] ?? "") : undefined)),
    answers: ["200"],
    key: "done",
    paid: 1,
    ran: 4,
  },
  {
    title: "a conflict each time: ten times, then 503",
    pay: ({ writeThen, sql, stage: { tables } }) => writeThen(() => sql(tables.conflicts[0] ?? "")),
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

/** Another has what a transaction needs to begin, for longer than it may take. */
function late(on: EngineName, take: (stage: Stage) => Promise<() => unknown>): PaymentRow {
  let giveBack: (() => unknown) | undefined;
  return {
    title: `no transaction in time, on ${on}: the handler never runs`,
    engineAlone: true,
    on: [on],
    process: () => ({ connections: 1 }),
    options: () => ({ idempotency: { waitMs: 0, storeTimeoutMs: 50 } }),
    async arrange(stage) {
      giveBack = await take(stage);
    },
    answers: ["503 transaction-unavailable"],
    async afterwards({ stores }) {
      await giveBack?.();
      // Behind what came too late.
      await stores.transactions.run(() => undefined as never);
      await sleep(100);
    },
    nonce: "fresh",
    key: "free",
    paid: 0,
  };
}

const beginnings: readonly PaymentRow[] = [
  ...asynchronous.map((on) =>
    late(on, async ({ stores, tables }) => {
      const [taken, told] = [deferred(), deferred()];
      const other = stores.transactions.run(async (tx) => {
        await tables.sql(tx, "SELECT 1");
        taken.resolve();
        await told.promise;
      });
      await taken.promise;
      return () => {
        told.resolve();
        return other;
      };
    }),
  ),
  late("sqlite", async ({ tables }) => {
    await tables.alone("BEGIN IMMEDIATE");
    return () => tables.alone("ROLLBACK");
  }),
];

/** Of engines whose transactions stay open, and of their lines. */
export const openRows: readonly PaymentRow[] = [
  ...[...waits, ...(["commits", "rolls back", "stays open"] as const).map(together), ...faults].map(
    (row): PaymentRow => ({ on: asynchronous, ...row }),
  ),
  ...beginnings,
];
