import { readFileSync } from "node:fs";
import { payoutRoute } from "@countersign/fetch";
import { createStores } from "@countersign/store-sql";
import { serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import Database from "libsql";

const database = new Database("platform.db");
database.exec(
  `CREATE TABLE IF NOT EXISTS payouts
    (idempotency_key TEXT PRIMARY KEY, iban TEXT) STRICT`,
);
const insertPayout = database.prepare("INSERT INTO payouts VALUES (?, ?)");
const stores = createStores({ database });

const receivePayout = payoutRoute({
  addresses: { allow: ["127.0.0.1"] }, // From where the service calls.
  signature: { keys: JSON.parse(readFileSync("keys/keys.json", "utf8")) },
  stores,
  // Any valid IBAN is paid, until findBusiness asks your records.
  // In one transaction with the payout's key: it stays when this returns.
  pay: ({ idempotencyKey, beneficiary }) =>
    insertPayout.run(idempotencyKey, beneficiary.iban),
});

const app = new Hono();
app.all("/api/v1/transaction", (c) =>
  // Without a proxy in front, the socket says who calls.
  receivePayout(c.req.raw, { clientAddress: getConnInfo(c).remote.address }),
);

const port = Number(process.env["PORT"] ?? 3000);
serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }, () =>
  console.log(`listening on port ${port}`),
);
