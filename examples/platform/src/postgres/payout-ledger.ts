import type { Pool } from "pg";
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
import { postgresDialect, type Now } from "./dialect.ts";
import { query } from "./queries.ts";
import { inTransaction } from "./transaction.ts";
import { orUnavailable } from "./unavailable.ts";

export function createPostgresPayoutLedger(pool: Pool, schema: string, now: Now): PayoutLedger {
  const dialect = postgresDialect(schema);
  const statements = payoutStatements(dialect);
  const tasks = outboxStatements(dialect);
  return {
    accept(payout, completeKey) {
      const acceptedAt = now();
      const insert = completeKey === undefined ? statements.insertUnlessKnown : statements.insert;
      const accepted = inTransaction(pool, async (client) => {
        // First: from here on nobody takes the key over, however long the rest waits for a lock.
        await completeKey?.(client);
        const inserted = await query(client, insert, [...payoutValues(payout), acceptedAt]);
        if (inserted.length === 0) {
          const [row] = await query(client, statements.selectInstruction, [payout.idempotencyKey]);
          return knownAs(row, payout);
        }
        await query(client, tasks.add, ["transfer", payout.idempotencyKey, acceptedAt]);
        return "accepted";
      });
      return orUnavailable(accepted);
    },
    async order(idempotencyKey) {
      const [row] = await query(pool, statements.selectOrder, [idempotencyKey]);
      return orderRow.optional().parse(row);
    },
    settle(task, { status, reason = null }) {
      return inTransaction(pool, async (client) => {
        const settledAt = now();
        await query(client, statements.settle, [status, reason, settledAt, task.idempotencyKey]);
        await query(client, tasks.finish, [task.id]);
        await query(client, tasks.add, ["confirmation", task.idempotencyKey, settledAt]);
      });
    },
    async confirmation(idempotencyKey) {
      const [row] = await query(pool, statements.selectSettled, [idempotencyKey]);
      return settledRow.parse(row);
    },
    async inspect() {
      const rows = await query(pool, statements.selectAll);
      return rows.map((row) => inspectedRow.parse(row));
    },
    check: async () => void (await query(pool, "SELECT 1")),
  };
}
