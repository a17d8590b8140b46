import { isOnMysqlAlone, isWhole } from "@countersign/test-support/runs/share.ts";
import { describeDatabase } from "./describe-database.ts";
import { describeErrors } from "./describe-errors.ts";
import { describeIsolation } from "./describe-isolation.ts";
import { describeLateStatements } from "./describe-late-statements.ts";
import { describeLeases } from "./describe-leases.ts";
import { describeLostLines } from "./describe-lost-lines.ts";
import { describePayments } from "./describe-payments.ts";
import { describePoolReaders } from "./describe-pool-readers.ts";
import { describeSettledHandlers } from "./describe-settled-handlers.ts";
import { describeTexts } from "./describe-texts.ts";
import { describeTimeOuts } from "./describe-time-outs.ts";
import { describeWork } from "./describe-work.ts";
import type { TableRow } from "./row.ts";

/** What a driver can do, and payments through it that go on after their handlers have settled. */
export function describeDriver<Tx>(row: TableRow<Tx>): void {
  describeAll(row);
  if (!isWhole && !isOnMysqlAlone) describeSettledHandlers(row);
}

/** What a library can do, and a payment through it; in the whole table also what happens when something goes wrong meanwhile. */
export function describeAll<Tx>(row: TableRow<Tx>): void {
  if (isOnMysqlAlone && row.engine !== "mysql") return;
  describeDatabase(row);
  if (row.engine === "postgresql") describeErrors(row);
  describePayments(row);
  describePoolReaders(row);
  describeTexts(row);
  if (isWhole || isOnMysqlAlone) describeSettledHandlers(row);
  if (!isWhole) return;
  describeIsolation(row);
  describeLateStatements(row);
  describeLeases(row);
  describeLostLines(row);
  describeTimeOuts(row);
  describeWork(row);
}
