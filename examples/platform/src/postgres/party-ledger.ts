import type { Pool } from "pg";
import { eventRow, isFirst, partyLedgerOn, stateOf, type PartyLedger } from "../party-ledger.ts";
import { partyStatements } from "../party-statements.ts";
import { postgresDialect } from "./dialect.ts";
import { query } from "./queries.ts";
import { inTransaction } from "./transaction.ts";
import { orUnavailable } from "./unavailable.ts";

export function createPostgresPartyLedger(pool: Pool, schema: string): PartyLedger {
  const statements = partyStatements(postgresDialect(schema));
  return partyLedgerOn({
    apply({ event, change, completeEvent }) {
      const record = completeEvent === undefined ? statements.insertEventUnlessKnown : statements.countEvent;
      const applied = inTransaction(pool, async (client) => {
        // First: from here on nobody takes the event over, however long the rest waits for a lock.
        await completeEvent?.(client);
        const [row] = await query(client, record, [event.event_id, event.type]);
        if (isFirst(row) && change !== undefined) {
          await query(client, statements.changes[change.statement], change.values);
        }
      });
      return orUnavailable(applied);
    },
    async inspectEvents() {
      const rows = await query(pool, statements.selectEvents);
      return rows.map((row) => eventRow.parse(row));
    },
    async inspectState() {
      const { selectBuyers, selectSellers, selectRequests } = statements;
      const [buyers, sellers, requests] = await Promise.all([
        query(pool, selectBuyers),
        query(pool, selectSellers),
        query(pool, selectRequests),
      ]);
      return stateOf({ buyers, sellers, requests });
    },
  });
}
