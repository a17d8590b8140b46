import { withImmediateTransaction } from "@countersign/store-sqlite";
import { eventRow, isFirst, partyLedgerOn, stateOf, type PartyLedger } from "../party-ledger.ts";
import { partyStatements } from "../party-statements.ts";
import type { PlatformDatabase } from "./database.ts";
import { sqliteDialect } from "./dialect.ts";

/** A ledger that answers at once. */
export function createSqlitePartyLedger(database: PlatformDatabase): PartyLedger {
  const statements = partyStatements(sqliteDialect);
  const countEvent = database.prepare(statements.countEvent);
  const insertEventUnlessKnown = database.prepare(statements.insertEventUnlessKnown);
  const changes = {
    buyer: database.prepare(statements.changes.buyer),
    seller: database.prepare(statements.changes.seller),
    close: database.prepare(statements.changes.close),
    remind: database.prepare(statements.changes.remind),
  };
  const selectEvents = database.prepare(statements.selectEvents);
  const selectBuyers = database.prepare(statements.selectBuyers);
  const selectSellers = database.prepare(statements.selectSellers);
  const selectRequests = database.prepare(statements.selectRequests);
  return partyLedgerOn({
    apply({ event, change, completeEvent }) {
      const record = completeEvent === undefined ? insertEventUnlessKnown : countEvent;
      withImmediateTransaction(database, (transaction) => {
        const completed = completeEvent?.(transaction);
        const isNew = isFirst(record.all(event.event_id, event.type)[0]);
        if (isNew && change !== undefined) changes[change.statement].run(...change.values);
        // Returned, so that a promise is refused: COMMIT would not wait for it.
        return completed;
      });
    },
    inspectEvents: () => selectEvents.all().map((row) => eventRow.parse(row)),
    inspectState: () =>
      stateOf({
        buyers: selectBuyers.all(),
        sellers: selectSellers.all(),
        requests: selectRequests.all(),
      }),
  });
}
