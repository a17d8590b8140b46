// The example in the README of countersign, with a database that outlives it.
import assert from "node:assert/strict";
import { generateKeyPair } from "@countersign/sandbox";
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
const payouts = database.prepare("SELECT idempotency_key, iban FROM payouts").all();
assert.deepEqual(payouts, [{ idempotency_key: paid.idempotency_key, iban: paid.beneficiary.iban }]);
assert.deepEqual(database.prepare("SELECT * FROM events").all(), [
  { event_id: "event-1", type: "buyer.approved" },
]);
