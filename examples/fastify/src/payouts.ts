import { readFileSync } from "node:fs";
import { payoutPlugin } from "@countersign/fastify";
import { createStores } from "@countersign/store-sql";
import { fastify } from "fastify";
import Database from "libsql";

const database = new Database("platform.db");
database.exec(
  `CREATE TABLE IF NOT EXISTS payouts
    (idempotency_key TEXT PRIMARY KEY, iban TEXT) STRICT`,
);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const stores = createStores({ database });

const payouts = payoutPlugin({
  url: "/api/v1/transaction",
  addresses: { allow: ["127.0.0.1"] }, // From where the service calls.
  signature: { keys: JSON.parse(readFileSync("keys/keys.json", "utf8")) },
  stores,
  // Whom you pay: here the sandbox's business, in your app a look-up of both.
  findBusiness: ({ businessId, iban }) =>
    businessId === "business-1" && iban === "DE89370400440532013000",
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});

const app = fastify();
void app.register(payouts);

const port = Number(process.env["PORT"] ?? 3000);
await app.listen({ port, host: "127.0.0.1" });
console.log(`listening on port ${port}`);
