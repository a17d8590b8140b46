import { refuse } from "@countersign/idempotency-guard";
import type { EngineName } from "./engines.ts";
import { fail, refusalWith } from "./handler-rows.ts";
import type { PaymentRow, Stage } from "./stage.ts";

/** What a trigger does, in the words of each engine that can. */
type Doing = Readonly<Partial<Record<EngineName, string>>>;

interface Meddling extends Omit<PaymentRow, "afterwards" | "arrange" | "on"> {
  readonly when: "AFTER UPDATE" | "BEFORE INSERT" | "BEFORE UPDATE" | "at COMMIT";
  readonly table: "idempotency" | "nonces" | "payments";
  readonly does: Doing;
}

const raise = (state: string): string => `RAISE EXCEPTION 'meddled' USING ERRCODE = '${state}';`;
const signal = (errno: number): string => `SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = ${errno}`;
const select = (how: string): string => `SELECT RAISE(${how});`;

const fails: Doing = {
  postgresql: raise("P0001"),
  sqlite: select("ABORT, 'meddled'"),
  mariadb: signal(1644),
};
// MariaDB knows none.
const dropsRow = { postgresql: "RETURN NULL;", sqlite: select("IGNORE") } satisfies Doing;

function made({ when, table, does, ...row }: Meddling): PaymentRow {
  const nameOn = (stage: Stage): string => (table === "payments" ? table : `${stage.tables.prefix}_${table}`);
  return {
    ...row,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the names of Doing
    on: Object.keys(does) as EngineName[],
    async arrange(stage) {
      const { tables, engine } = stage;
      await tables.alone(statements[engine.name](when, nameOn(stage), does[engine.name] ?? ""));
    },
    afterwards: async (stage) =>
      stage.tables.alone(
        `DROP TRIGGER meddle${stage.engine.name === "postgresql" ? ` ON ${nameOn(stage)}` : ""}`,
      ),
  };
}

/** A trigger on one of the payout's tables, until the last answer. */
const statements: Readonly<
  Record<EngineName, (when: Meddling["when"], table: string, body: string) => string>
> = {
  postgresql(when, table, body) {
    const [kind, timing] = when === "at COMMIT" ? ["CONSTRAINT TRIGGER", "AFTER INSERT"] : ["TRIGGER", when];
    const deferral = kind === "TRIGGER" ? "" : "DEFERRABLE INITIALLY DEFERRED";
    return `CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;
      CREATE ${kind} meddle ${timing} ON ${table} ${deferral} FOR EACH ROW EXECUTE FUNCTION meddle()`;
  },
  sqlite: (when, table, body) => `CREATE TRIGGER meddle ${when} ON ${table} BEGIN ${body} END`,
  mariadb: (when, table, body) => `CREATE TRIGGER meddle ${when} ON ${table} FOR EACH ROW ${body}`,
};

const unpaid = { key: "free", paid: 0 } as const;
const before = { ...unpaid, ran: 0, nonce: "fresh" } as const;
const unavailable = ["503 transaction-unavailable"];
const conflict = ["503 transaction-conflict"];

const refused: Pick<PaymentRow, "answers" | "pay"> = {
  pay: ({ writeThen }) =>
    writeThen(() => {
      throw refuse("account-frozen");
    }),
  answers: ["400 account-frozen"],
};

const rows: readonly Meddling[] = [
  {
    title: "a trigger that fails for the payment",
    when: "BEFORE INSERT",
    table: "payments",
    does: fails,
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails for the payment, and rolls back: the key is held",
    when: "BEFORE INSERT",
    table: "payments",
    does: { sqlite: select("ROLLBACK, 'meddled'") },
    answers: ["500 transaction-broken"],
    key: "held",
    paid: 0,
    ran: 1,
  },
  {
    title: "a trigger that fails for the payment at COMMIT",
    when: "at COMMIT",
    table: "payments",
    does: { postgresql: raise("P0001") },
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails for the payment as a conflict does",
    when: "BEFORE INSERT",
    table: "payments",
    does: { postgresql: raise("40001"), mariadb: signal(1213) },
    answers: conflict,
    ...unpaid,
    nonce: "fresh",
    ran: 10,
  },
  {
    title: "a trigger that fails for the payment as a lost line does: the line lives",
    when: "BEFORE INSERT",
    table: "payments",
    does: { postgresql: raise("08006"), mariadb: signal(2013) },
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails for the payment as a savepoint does that is gone",
    when: "BEFORE INSERT",
    table: "payments",
    does: { postgresql: raise("3B001"), mariadb: signal(1305) },
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails for a new key",
    when: "BEFORE INSERT",
    table: "idempotency",
    does: fails,
    answers: unavailable,
    ...before,
  },
  {
    title: "a trigger that fails for a new key at COMMIT",
    when: "at COMMIT",
    table: "idempotency",
    does: { postgresql: raise("P0001") },
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that drops a new key, which is not begun",
    when: "BEFORE INSERT",
    table: "idempotency",
    does: { sqlite: dropsRow.sqlite, postgresql: dropsRow.postgresql },
    answers: unavailable,
    ...before,
  },
  {
    title: "a trigger that makes a free one of a new key, which is taken all the same",
    when: "BEFORE INSERT",
    table: "idempotency",
    does: { mariadb: "SET NEW.state = 'free'" },
    answers: ["200"],
    key: "done",
    paid: 1,
  },
  {
    title: "a trigger that fails for a nonce",
    when: "BEFORE INSERT",
    table: "nonces",
    does: fails,
    answers: unavailable,
    ...before,
  },
  {
    title: "a trigger that drops a nonce",
    when: "BEFORE INSERT",
    table: "nonces",
    does: { ...dropsRow, mariadb: "SET NEW.token = 'meddled'" },
    answers: ["401 nonce-replayed"],
    ...before,
  },
  {
    title: "a trigger that fails where a refused payment frees its key",
    when: "BEFORE UPDATE",
    table: "idempotency",
    does: fails,
    pay: ({ writeThen }) => writeThen(fail),
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails where a payment frees its key whose refusal has 409",
    when: "BEFORE UPDATE",
    table: "idempotency",
    does: fails,
    pay: ({ writeThen }) =>
      writeThen(() => {
        throw refusalWith(409);
      }),
    answers: ["500 handler-answered-409"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that keeps a refused payment's key from being freed: it is not done",
    when: "BEFORE UPDATE",
    table: "idempotency",
    does: dropsRow,
    ...refused,
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that leaves a refused payment's key its state: it is not done",
    when: "BEFORE UPDATE",
    table: "idempotency",
    does: {
      postgresql: "NEW.state := OLD.state; RETURN NEW;",
      mariadb: "SET NEW.state = OLD.state",
    },
    ...refused,
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that gives a refused payment's key its state back: it is not done",
    when: "AFTER UPDATE",
    table: "idempotency",
    does: {
      postgresql: `IF OLD.state = 'done' THEN
        UPDATE countersign_idempotency SET state = 'done' WHERE key = OLD.key;
      END IF; RETURN NULL;`,
      sqlite: "UPDATE countersign_idempotency SET state = OLD.state WHERE key = OLD.key;",
    },
    ...refused,
    ...unpaid,
    ran: 1,
  },
];

/** Triggers of the app, or of a tool such as an audit. */
export const triggerRows: readonly PaymentRow[] = rows.map((row) => ({ ...made(row), engineAlone: true }));
