import { fromPg } from "@countersign/databases";
import { payoutEndpoint } from "@countersign/payout";
import { createPostgresStores } from "@countersign/store-postgres";
import type { Express } from "express";
import { Pool } from "pg";

// With Prisma, Drizzle, Kysely, Knex … this line differs, nothing else.
const stores = createPostgresStores({ database: fromPg(new Pool()) });

export function receivePayouts(app: Express, publicKeyPem: string): void {
  const receivePayout = payoutEndpoint({
    // From where the service calls, and its Ed25519 key by keyid.
    addresses: { allow: ["192.0.2.10", "198.51.100.0/28"] },
    signature: { keys: { "service-2026": publicKeyPem } },
    stores,
    // Once for each payout, however often it is sent: what you write with
    // tx commits together with the payout's key, or not at all.
    async pay({ idempotencyKey, beneficiary }, { tx }) {
      await tx.query("INSERT INTO payments VALUES ($1, $2)", [
        idempotencyKey,
        beneficiary.iban,
      ]);
    },
  });
  app.post("/api/v1/transaction", receivePayout);
}
