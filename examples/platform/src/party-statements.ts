import type { SqlDialect } from "./sql-dialect.ts";

/** The statements of a party ledger, with the names of their values in the order in which they are bound. */
export interface PartyStatements {
  /** eventId, type. Gives how often the event was applied, this time included. */
  readonly countEvent: string;
  /** eventId, type. Gives a row when the event is new, and none otherwise. */
  readonly insertEventUnlessKnown: string;
  readonly changes: PartyChangeStatements;
  readonly selectEvents: string;
  readonly selectBuyers: string;
  readonly selectSellers: string;
  readonly selectRequests: string;
}

/** What events change. In whatever order they come, the rows end as they would in the order of the events' own times. */
export interface PartyChangeStatements {
  /** id, status, time. An older status changes nothing. */
  readonly buyer: string;
  /** The same of a seller. */
  readonly seller: string;
  /** id. CLOSED is final. */
  readonly close: string;
  /** id. The one change that adds up. */
  readonly remind: string;
}

export function partyStatements({ schema }: SqlDialect): PartyStatements {
  const insertEvent = `INSERT INTO ${schema}webhook_events (event_id, type, applied) VALUES (?, ?, 1)`;
  const requests = `${schema}payment_requests`;
  return {
    countEvent: `
      ${insertEvent} ON CONFLICT (event_id) DO UPDATE SET applied = webhook_events.applied + 1
      RETURNING applied`,
    insertEventUnlessKnown: `${insertEvent} ON CONFLICT (event_id) DO NOTHING RETURNING applied`,
    changes: {
      buyer: upsertStatus(schema, "buyers"),
      seller: upsertStatus(schema, "sellers"),
      close: `
        INSERT INTO ${requests} (id, status, reminders) VALUES (?, 'CLOSED', 0)
        ON CONFLICT (id) DO UPDATE SET status = 'CLOSED'`,
      remind: `
        INSERT INTO ${requests} (id, status, reminders) VALUES (?, 'PENDING_REPAYMENT', 1)
        ON CONFLICT (id) DO UPDATE SET reminders = payment_requests.reminders + 1`,
    },
    selectEvents: `SELECT event_id, type, applied FROM ${schema}webhook_events ORDER BY rowid`,
    selectBuyers: `SELECT id, status FROM ${schema}buyers`,
    selectSellers: `SELECT id, status FROM ${schema}sellers`,
    selectRequests: `SELECT id, status, reminders FROM ${requests}`,
  };
}

function upsertStatus(schema: string, table: "buyers" | "sellers"): string {
  return `
    INSERT INTO ${schema}${table} (id, status, changed_at) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, changed_at = excluded.changed_at
    WHERE excluded.changed_at >= ${table}.changed_at`;
}
