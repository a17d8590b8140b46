import { refuse } from "@countersign/idempotency-guard";
import { fail } from "./handler-rows.ts";
import type { PaymentRow, Stage } from "./stage.ts";

const keys = "countersign_idempotency";
const nonces = "countersign_nonces";
const raise = (state: string): string => `RAISE EXCEPTION 'meddled' USING ERRCODE = '${state}';`;
const fails = raise("P0001");
const dropsRow = "RETURN NULL;";

/** A trigger on one of the payout's tables, until the last answer. */
function trigger(when: string, table: string, body: string): Pick<PaymentRow, "afterwards" | "arrange"> {
  const [kind, timing] = when.endsWith("DEFERRED")
    ? ["CONSTRAINT TRIGGER", "AFTER INSERT"]
    : ["TRIGGER", when];
  const deferral = kind === "TRIGGER" ? "" : "DEFERRABLE INITIALLY DEFERRED";
  return {
    async arrange({ tables }: Stage) {
      await tables.alone(
        `CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;
         CREATE ${kind} meddle ${timing} ON ${table} ${deferral} FOR EACH ROW EXECUTE FUNCTION meddle()`,
      );
    },
    afterwards: ({ tables }) => tables.alone(`DROP TRIGGER meddle ON ${table}`),
  };
}

const unpaid = { key: "free", paid: 0 } as const;
const before = { ...unpaid, ran: 0, nonce: "fresh" } as const;
const unavailable = ["503 transaction-unavailable"];
const conflict = ["503 transaction-conflict"];

const rows: readonly PaymentRow[] = [
  {
    title: "a trigger that fails for the payment",
    ...trigger("BEFORE INSERT", "payments", fails),
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails for the payment at COMMIT",
    ...trigger("DEFERRED", "payments", fails),
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails for the payment as a conflict does",
    ...trigger("BEFORE INSERT", "payments", raise("40001")),
    answers: conflict,
    ...unpaid,
    nonce: "fresh",
    ran: 10,
  },
  {
    title: "a trigger that fails for the payment as a lost line does: the line lives",
    ...trigger("BEFORE INSERT", "payments", raise("08006")),
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails for the payment as a savepoint does that is gone",
    ...trigger("BEFORE INSERT", "payments", raise("3B001")),
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that fails for a new key",
    ...trigger("BEFORE INSERT", keys, fails),
    answers: unavailable,
    ...before,
  },
  {
    title: "a trigger that fails for a new key at COMMIT",
    ...trigger("DEFERRED", keys, fails),
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that drops a new key",
    ...trigger("BEFORE INSERT", keys, dropsRow),
    answers: conflict,
    ...before,
  },
  {
    title: "a trigger that fails for a nonce",
    ...trigger("BEFORE INSERT", nonces, fails),
    answers: unavailable,
    ...before,
  },
  {
    title: "a trigger that drops a nonce",
    ...trigger("BEFORE INSERT", nonces, dropsRow),
    answers: ["401 nonce-replayed"],
    ...before,
  },
  {
    title: "a trigger that fails where a refused payment frees its key",
    ...trigger("BEFORE UPDATE", keys, fails),
    pay: ({ writeThen }) => writeThen(fail),
    answers: ["500"],
    ...unpaid,
    ran: 1,
  },
  {
    title: "a trigger that keeps a refused payment's key from being freed: it is not done",
    ...trigger("BEFORE UPDATE", keys, dropsRow),
    pay: ({ writeThen }) =>
      writeThen(() => {
        throw refuse("account-frozen");
      }),
    answers: ["400 account-frozen"],
    ...unpaid,
    ran: 1,
  },
];

/** Triggers of the app, or of a tool such as an audit, on the tables of PostgreSQL. */
export const triggerRows: readonly PaymentRow[] = rows.map((row) => ({ ...row, on: ["postgresql"] }));
