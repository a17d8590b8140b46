import { idempotencyRows } from "./idempotency-rows.ts";
import { keyRows } from "./key-rows.ts";
import { payoutRows } from "./payout-rows.ts";
import type { Row } from "./row.ts";
import { schemaRows } from "./schema-rows.ts";
import { webhookRows } from "./webhook-rows.ts";

export const table: readonly Row[] = [
  ...payoutRows,
  ...schemaRows,
  ...keyRows,
  ...webhookRows,
  ...idempotencyRows,
];
