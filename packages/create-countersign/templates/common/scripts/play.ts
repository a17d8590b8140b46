// npm run play: the lending service, towards the platform that runs with this .env.
import { readFileSync } from "node:fs";
import { createPayoutInstruction, generateKeyPair, sampleBusiness } from "@countersign/sandbox";
import { addBusiness, closeDatabase, openDatabase } from "../src/database.ts";
import { settings } from "../src/settings.ts";
import { notify, pay, webhookOf } from "../test/lending-service.ts";

const { keyid, webhookUsername: username, webhookPassword: password, webhookSecret: secret } = settings;
const credentials = { username, password, secret };
const url = `http://127.0.0.1:${settings.port}`;
const privateKey = readFileSync(`keys/${keyid}.private.pem`, "utf8");
const webhook = url + settings.webhookPath;

await openDatabase();
await addBusiness(sampleBusiness.businessId, sampleBusiness.iban);
await closeDatabase();

const payout = createPayoutInstruction();
const body = webhookOf(`event-${Date.now()}`);
console.log("a signed payout       ", await pay(url, payout, keyid, privateKey));
console.log("the same again        ", await pay(url, payout, keyid, privateKey));
console.log("signed by another key ", await pay(url, payout, keyid, generateKeyPair().privateKeyPem));
console.log("a webhook             ", await notify(webhook, body, credentials));
console.log("the same again        ", await notify(webhook, body, credentials));
