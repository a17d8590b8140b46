import type { SqlDialect } from "./database.ts";
import { partyStatements } from "./parties.ts";
import { payoutStatements } from "./payouts.ts";

/** The names of all tables. */
export const tableNames = ["payouts", "webhook_events", "buyers", "sellers", "payment_requests"];

/** Creates the tables that are missing. The service may send statuses that nobody knows yet. */
export function tables({ schema, text, rowid, strict }: SqlDialect): string {
  const party = `(
      id         ${text} NOT NULL PRIMARY KEY,
      status     ${text} NOT NULL,
      changed_at ${text} NOT NULL
    ) ${strict}`;
  return `
    CREATE TABLE IF NOT EXISTS ${schema}payouts (
      ${rowid}
      idempotency_key  ${text} NOT NULL UNIQUE,
      business_id      ${text} NOT NULL,
      iban             ${text} NOT NULL,
      bic              ${text} NOT NULL,
      beneficiary_name ${text} NOT NULL,
      reference        ${text},
      instruction      ${text} NOT NULL,
      status           ${text} NOT NULL CHECK (status IN ('accepted', 'executed', 'failed')),
      status_reason    ${text},
      created_at       ${text} NOT NULL,
      settled_at       ${text}
    ) ${strict};
    CREATE TABLE IF NOT EXISTS ${schema}webhook_events (
      ${rowid}
      event_id ${text} NOT NULL UNIQUE,
      type     ${text} NOT NULL,
      applied  INTEGER NOT NULL
    ) ${strict};
    CREATE TABLE IF NOT EXISTS ${schema}buyers ${party};
    CREATE TABLE IF NOT EXISTS ${schema}sellers ${party};
    CREATE TABLE IF NOT EXISTS ${schema}payment_requests (
      id        ${text} NOT NULL PRIMARY KEY,
      status    ${text} NOT NULL CHECK (status IN ('PENDING_REPAYMENT', 'CLOSED')),
      reminders INTEGER NOT NULL
    ) ${strict};`;
}

/** Every statement on them, to be prepared at the start: tables that do not fit are found then, and not by the first payout. */
export function allStatements(dialect: SqlDialect): readonly string[] {
  const groups = [payoutStatements(dialect), partyStatements(dialect)];
  return groups.flatMap((group) => Object.values<string>(group));
}
