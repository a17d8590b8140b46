import { fromMysql2 } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createMysqlStores } from "@countersign/store-mysql";
import type { Pool } from "mysql2/promise";
import { service } from "./service.ts";

export function payouts(pool: Pool) {
  const stores = createMysqlStores({ database: fromMysql2(pool) });
  const insert = "INSERT INTO payments (id, iban) VALUES (?, ?)";
  return payoutEndpoint({
    ...service,
    stores,
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx.query(insert, [key, iban]);
    },
  });
}
