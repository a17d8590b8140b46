import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import type { Pool, RowDataPacket } from "mysql2/promise";
import { service } from "./service.js";

// Your tables: payments (id VARCHAR(256) PRIMARY KEY, iban TEXT NOT NULL),
// and whom you pay: businesses (id VARCHAR(256) PRIMARY KEY, iban TEXT).

// At the start: process.once("SIGTERM", await start(express(), pool));
export async function start(app: Express, pool: Pool) {
  const stores = createStores({ database: fromMysql2(pool) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const select = "SELECT 1 FROM businesses WHERE id = ? AND iban = ?";
  const insert = "INSERT INTO payments (id, iban) VALUES (?, ?)";
  const receivePayout = payoutEndpoint({
    ...service,
    stores,
    async findBusiness({ businessId, iban }) {
      const values = [businessId, iban];
      const [rows] = await pool.query<RowDataPacket[]>(select, values);
      return rows.length === 1;
    },
    async pay({ idempotencyKey: key, beneficiary: { iban } }, { tx }) {
      await tx.query(insert, [key, iban]);
    },
  });
  app.post("/api/v1/transaction", receivePayout);
  const server = app.listen(process.env["PORT"] ?? 3000);
  const close = gracefulClose(server, { endpoints: [receivePayout] });
  return async () => {
    await close(); // What was received is answered.
    stores.close();
    await pool.end();
  };
}
