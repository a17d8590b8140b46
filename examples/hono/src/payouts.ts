import { readFileSync } from "node:fs";
import { payoutRoute } from "@countersign/fetch";
import { createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import { serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import Database from "libsql";

const database = new Database("platform.db");
database.exec("CREATE TABLE IF NOT EXISTS payouts (idempotency_key TEXT PRIMARY KEY, iban TEXT) STRICT");
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const stores = createSqliteStores({ database });

const receivePayout = payoutRoute(
  {
    addresses: { allow: ["127.0.0.1"] }, // from where the service calls
    signature: { keys: JSON.parse(readFileSync("keys/keys.json", "utf8")), nonces: stores.nonces },
    idempotency: { store: stores.idempotency, recovery: "rerun" },
  },
  (_request, { payout, idempotency }) => {
    withImmediateTransaction(database, (tx) => {
      const completed = idempotency.completeIn(tx); // first: payout and key commit together
      insertPayout.run(payout.idempotencyKey, payout.beneficiary.iban);
      return completed;
    });
    return Response.json({ status: "acknowledged" });
  },
);

const app = new Hono();
app.all("/api/v1/transaction", (c) =>
  // Without a proxy in front, the socket says who calls.
  receivePayout(c.req.raw, { clientAddress: getConnInfo(c).remote.address }),
);

const port = Number(process.env["PORT"] ?? 3000);
serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }, () => console.log(`listening on port ${port}`));
