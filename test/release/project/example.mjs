// The example in the README of countersign, with a database that outlives it: what was handled is done in its store.
import assert from "node:assert/strict";
import { generateKeyPair } from "@countersign/devtools/sandbox";
import { generateEndpoint } from "countersign";
import Database from "libsql";
import { createApp } from "./app.js";
import { notifyTwice, payTwice, whileListening } from "./send.mjs";

const { keyid, publicKeyPem, privateKeyPem: privateKey } = generateKeyPair();
const endpoint = generateEndpoint({ baseUrl: "https://platform.example" });
const app = createApp({ [keyid]: publicKeyPem }, endpoint, "platform.db");
const paid = await whileListening(app, async (origin) => {
  await notifyTwice(origin, endpoint);
  return payTwice(origin, { keyid, privateKey });
});
const database = new Database("platform.db");
const keys = database.prepare("SELECT key, state FROM countersign_idempotency ORDER BY key").all();
assert.deepEqual(keys, [
  { key: `payout:${paid.idempotency_key}`, state: "done" },
  { key: "webhook-event:event-1", state: "done" },
]);
