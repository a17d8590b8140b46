import { readFileSync } from "node:fs";
import { payoutPlugin } from "@countersign/fastify";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import { fastify } from "fastify";
import Database from "libsql";

const database = new Database("platform.db");
database.exec("CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT PRIMARY KEY, iban TEXT) STRICT");
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const stores = createSqliteStores({ database });

const payouts = payoutPlugin({
  url: "/api/v1/transaction",
  addresses: { allow: ["127.0.0.1"] }, // from where the service calls
  signature: { keys: JSON.parse(readFileSync("keys/keys.json", "utf8")), nonces: stores.nonces },
  idempotency: { store: stores.idempotency, recovery: "rerun" },
  handler: (_request, _reply, { payout, idempotency }) => {
    withImmediateTransaction(database, (tx) => {
      const completed = idempotency.completeIn(tx); // first: payout and key commit together
      insertPayout.run(payout.idempotencyKey, payout.beneficiary.iban);
      return completed;
    });
    return { status: "acknowledged" };
  },
});

const app = fastify();
void app.register(payouts);

const port = Number(process.env["PORT"] ?? 3000);
await app.listen({ port, host: "127.0.0.1" });
console.log(`listening on port ${port}`);
