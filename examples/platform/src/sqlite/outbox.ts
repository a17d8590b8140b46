import { keptError, taskRow, type Outbox } from "../outbox.ts";
import { outboxStatements } from "../outbox-statements.ts";
import type { PlatformDatabase } from "./database.ts";
import { sqliteDialect } from "./dialect.ts";

/** `now` gives milliseconds since 1970. */
export function createSqliteOutbox(database: PlatformDatabase, now: () => number): Outbox {
  const statements = outboxStatements(sqliteDialect);
  const claim = database.prepare(statements.claim);
  const finish = database.prepare(statements.finish);
  const retry = database.prepare(statements.retry);
  const bury = database.prepare(statements.bury);
  return {
    claim(task, leaseMs) {
      const claimedAt = now();
      return taskRow.optional().parse(claim.all(claimedAt, leaseMs, task, claimedAt)[0]);
    },
    finish: (id) => void finish.run(id),
    retry: (id, waitMs, error) => void retry.run(now(), waitMs, keptError(error), id),
    bury: (id, error) => void bury.run(keptError(error), id),
  };
}
