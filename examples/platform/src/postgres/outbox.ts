import type { PostgresQueryable } from "@countersign/store-postgres";
import { keptError, taskRow, type Outbox } from "../outbox.ts";
import { outboxStatements } from "../outbox-statements.ts";
import { postgresDialect, type Now } from "./dialect.ts";
import { query } from "./queries.ts";

/** An outbox that several processes share. */
export function createPostgresOutbox(pool: PostgresQueryable, schema: string, now: Now): Outbox {
  const statements = outboxStatements(postgresDialect(schema));
  return {
    async claim(task, leaseMs) {
      const claimedAt = now();
      const [row] = await query(pool, statements.claim, [claimedAt, leaseMs, task, claimedAt]);
      return taskRow.optional().parse(row);
    },
    finish: async (id) => void (await query(pool, statements.finish, [id])),
    retry: async (id, waitMs, error) =>
      void (await query(pool, statements.retry, [now(), waitMs, keptError(error), id])),
    bury: async (id, error) => void (await query(pool, statements.bury, [keptError(error), id])),
  };
}
