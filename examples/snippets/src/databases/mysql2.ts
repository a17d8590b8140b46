import { fromMysql2 } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createMysqlStores } from "@countersign/store-mysql";
import type { Pool } from "mysql2/promise";
import { service } from "./service.ts";

// Your table: payments (id VARCHAR(256) PRIMARY KEY, iban TEXT NOT NULL).
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

// Mount it: app.post("/api/v1/transaction", payouts(pool));
