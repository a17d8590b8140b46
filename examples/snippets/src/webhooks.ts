import { createStores } from "@countersign/store-sql";
import {
  createWebhookHandler,
  webhookEndpoint,
  type GeneratedEndpoint,
} from "countersign/webhooks";
import express, { type Express } from "express";
import Database from "libsql";

const file = process.env["DATABASE_FILE"] ?? ":memory:";
export const database: Database.Database = new Database(file);
database.exec(`
  CREATE TABLE IF NOT EXISTS changes (buyer TEXT, status TEXT) STRICT`);
const insertChange = database.prepare("INSERT INTO changes VALUES (?, ?)");

const handler = createWebhookHandler({
  stores: createStores({ database }),
  fallback: "ignore",
});
// In one transaction with the mark that the event is done.
handler.on("buyer.status_changed", ({ data }) =>
  insertChange.run(data.buyer_id, data.new_status),
);

/** `endpoint` is of generateEndpoint(). Mount it before any body parser. */
export function createApp(endpoint: GeneratedEndpoint): Express {
  const { path, username, password, secret } = endpoint;
  const receiveWebhook = webhookEndpoint({
    basicAuth: { username, password },
    hmac: { secret },
    handler,
  });
  return express().use(path, receiveWebhook);
}
