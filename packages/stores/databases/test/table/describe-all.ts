import { describeDatabase } from "./describe-database.ts";
import { describeErrors } from "./describe-errors.ts";
import { describeIsolation } from "./describe-isolation.ts";
import { describeLeases } from "./describe-leases.ts";
import { describeLostLines } from "./describe-lost-lines.ts";
import { describePayments } from "./describe-payments.ts";
import { describeWork } from "./describe-work.ts";
import type { TableRow } from "./row.ts";

export function describeAll<Tx>(row: TableRow<Tx>): void {
  describeDatabase(row);
  if (row.engine === "postgresql") describeErrors(row);
  describeIsolation(row);
  describeLeases(row);
  describePayments(row);
  describeLostLines(row);
  describeWork(row);
}
