import { gracefulClose } from "@countersign/express";
import { importVerificationKey } from "@countersign/http-signature-verify";
import { createStores } from "@countersign/store-sql";
import express from "express";
import Database from "libsql";
import { openLedger } from "./ledger.js";
import { mountRoutes } from "./routes.js";
import { tableOfKeys, tableOfNonces } from "./stores.js";

const database = new Database(setting("DATABASE_FILE"));
// First: it sets the durability of the connection.
const stores = createStores({ database });
const keys = tableOfKeys(database);
const [keyid, publicKey] = [setting("KEYID"), setting("PUBLIC_KEY")];
importVerificationKey(keyid, publicKey); // a bad key ends the process here
database
  .prepare("INSERT OR REPLACE INTO keys VALUES (?, ?)")
  .run(keyid, publicKey);

const app = express().disable("x-powered-by");
// The proxy that ends TLS: its word counts for address and scheme.
app.set("trust proxy", setting("TRUST_PROXY").split(","));
const endpoints = mountRoutes(app, {
  allow: setting("ALLOW_IPS").split(","),
  keys,
  nonces: tableOfNonces(database),
  stores,
  ledger: openLedger(database),
  webhookPath: setting("WEBHOOK_PATH"),
  basicAuth: {
    username: setting("WEBHOOK_USERNAME"),
    password: setting("WEBHOOK_PASSWORD"),
  },
  secret: setting("WEBHOOK_SECRET"),
});

const server = app.listen(Number(setting("PORT")), "127.0.0.1", (error) => {
  if (error) throw error;
  const address = server.address();
  if (address !== null && typeof address === "object") {
    console.log(`listening on http://127.0.0.1:${address.port}`);
  }
});
const close = gracefulClose(server, { endpoints });
process.once("SIGTERM", async () => {
  await close(); // what was received is answered
  stores.close();
  database.close();
});

function setting(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set`);
}
