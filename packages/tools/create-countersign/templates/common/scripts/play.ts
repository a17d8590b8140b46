// npm run play: the lending service, towards the platform that runs with this .env.
import { readFileSync } from "node:fs";
import { createPayoutInstruction, generateKeyPair, sampleBusiness } from "@countersign/devtools/sandbox";
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
const another = generateKeyPair().privateKeyPem;
await play("a signed payout", 200, () => pay(url, payout, keyid, privateKey));
await play("the same again", 409, () => pay(url, payout, keyid, privateKey));
await play("signed by another key", 401, () => pay(url, payout, keyid, another));
await play("a webhook", 200, () => notify(webhook, body, credentials));
await play("the same again", 200, () => notify(webhook, body, credentials));

async function play(what: string, expected: number, send: () => Promise<number>): Promise<void> {
  try {
    const status = await send();
    console.log(what.padEnd(22), status, status === expected ? "as expected" : `instead of ${expected}`);
    if (status !== expected) process.exitCode = 1;
  } catch (error) {
    console.error(`${what}: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
}
