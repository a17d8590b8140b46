import { sleep } from "../../support/runs/eventually.ts";
import type { EngineName } from "./engines.ts";
import { deferred, type PaymentRow, type Stage } from "./stage.ts";

const asynchronous: readonly EngineName[] = ["postgresql", "mariadb"];

/** Another has what a transaction needs to begin, for longer than it may take. */
function late(on: EngineName, take: (stage: Stage) => Promise<() => unknown>): PaymentRow {
  let giveBack: (() => unknown) | undefined;
  return {
    engineAlone: true,
    title: `no transaction in time, on ${on}: the handler never runs`,
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

/** Of SQLite, where another one's transaction has the write lock, and a payment waits to begin. */
const writeLocks: readonly PaymentRow[] = (
  [
    ["commits", "COMMIT", ["409 already-processed"], 0],
    ["is rolled back", "ROLLBACK", ["200"], 1],
  ] as const
).map(([how, statement, answers, paid]): PaymentRow => ({
  title: `a write lock that is given back in time: the key's other transaction ${how}`,
  arrange: ({ tables, key, fingerprint }) =>
    tables.alone(`BEGIN IMMEDIATE; INSERT INTO countersign_idempotency
          (key, state, token, fence, fingerprint, reason, recovery, until_ms, version)
          VALUES ('${key}', 'done', 'theirs', 1, '${fingerprint}', '', 'hold', 9000000000000, 1)`),
  async meanwhile({ tables }) {
    await tables.untilBlocked();
    await tables.alone(statement);
  },
  answers,
  key: "done",
  paid,
}));

/** Waits for the five seconds that are SQLite's own bound. */
export const slowRows: readonly PaymentRow[] = [
  {
    title: "a write lock that stays: the nonce is fresh",
    on: ["sqlite"],
    options: () => ({ idempotency: { waitMs: 0, storeTimeoutMs: 30_000 } }),
    arrange: ({ tables }) => tables.alone("BEGIN IMMEDIATE"),
    answers: ["503 in-flight"],
    afterwards: ({ tables }) => tables.alone("ROLLBACK"),
    nonce: "fresh",
    key: "free",
    paid: 0,
  },
];

/** Found out before any key is written. */
const noTransactions: readonly PaymentRow[] = [
  {
    title: "a library that opens no transaction, each time",
    process: () => ({ transactions: "autocommit" }),
    sends: ["new", "again"],
    answers: ["500", "500"],
    nonce: "fresh",
    key: "free",
    paid: 0,
  },
  {
    title: "transactions that may not write, each time",
    process: () => ({ transactions: "read-only" }),
    sends: ["new", "again"],
    answers: ["503 transaction-unavailable", "503 transaction-unavailable"],
    nonce: "fresh",
    key: "free",
    paid: 0,
  },
  {
    title: "a replica, which is promoted then",
    on: asynchronous,
    process: (stage) => ({
      wrap: (database) => ({
        ...database,
        async alone(text, values) {
          const rows = await database.alone(text, values);
          if (stage.isPromoted) return rows;
          // What PostgreSQL and MariaDB say of themselves.
          const as = { standby: true, read_only: 1 };
          return rows.map((row) => ({ ...row, ...pick(as, Object.keys(row)) }));
        },
      }),
    }),
    sends: [
      "new",
      (stage) => {
        stage.isPromoted = true;
        return stage.first;
      },
    ],
    answers: ["503 transaction-unavailable", "200"],
    key: "done",
    paid: 1,
  },
];

function pick(from: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
}

/** Of transactions that begin late, or cannot begin. */
export const beginRows: readonly PaymentRow[] = [
  ...beginnings,
  ...writeLocks.map((row): PaymentRow => ({ on: ["sqlite"], ...row })),
  ...noTransactions,
];
