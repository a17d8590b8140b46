import { withImmediateTransaction } from "@countersign/store-sqlite";
import { outboxStatements } from "../outbox-statements.ts";
import {
  inspectedRow,
  knownAs,
  orderRow,
  payoutValues,
  settledRow,
  type PayoutLedger,
} from "../payout-ledger.ts";
import { payoutStatements } from "../payout-statements.ts";
import type { PlatformDatabase } from "./database.ts";
import { sqliteDialect } from "./dialect.ts";

/** A ledger that answers at once. `now` gives milliseconds since 1970. */
export function createSqlitePayoutLedger(database: PlatformDatabase, now: () => number): PayoutLedger {
  const statements = payoutStatements(sqliteDialect);
  const tasks = outboxStatements(sqliteDialect);
  const insert = database.prepare(statements.insert);
  const insertUnlessKnown = database.prepare(statements.insertUnlessKnown);
  const selectInstruction = database.prepare(statements.selectInstruction);
  const selectOrder = database.prepare(statements.selectOrder);
  const settle = database.prepare(statements.settle);
  const selectSettled = database.prepare(statements.selectSettled);
  const selectAll = database.prepare(statements.selectAll);
  const addTask = database.prepare(tasks.add);
  const finishTask = database.prepare(tasks.finish);
  return {
    accept(payout, completeKey) {
      const acceptedAt = now();
      const values = payoutValues(payout);
      if (completeKey === undefined) {
        return withImmediateTransaction(database, () => {
          const inserted = insertUnlessKnown.all(...values, acceptedAt);
          if (inserted.length === 0) return knownAs(selectInstruction.all(payout.idempotencyKey)[0], payout);
          addTask.run("transfer", payout.idempotencyKey, acceptedAt);
          return "accepted";
        });
      }
      withImmediateTransaction(database, (transaction) => {
        const completed = completeKey(transaction);
        insert.all(...values, acceptedAt);
        addTask.run("transfer", payout.idempotencyKey, acceptedAt);
        // Returned, so that a promise is refused: COMMIT would not wait for it.
        return completed;
      });
      return "accepted";
    },
    order: (idempotencyKey) => orderRow.optional().parse(selectOrder.all(idempotencyKey)[0]),
    settle(task, outcome) {
      withImmediateTransaction(database, () => {
        const settledAt = now();
        settle.run(outcome.status, outcome.reason ?? null, settledAt, task.idempotencyKey);
        finishTask.run(task.id);
        addTask.run("confirmation", task.idempotencyKey, settledAt);
      });
    },
    confirmation: (idempotencyKey) => settledRow.parse(selectSettled.all(idempotencyKey)[0]),
    inspect: () => selectAll.all().map((row) => inspectedRow.parse(row)),
    check: () => void database.prepare("SELECT 1").all(),
  };
}
