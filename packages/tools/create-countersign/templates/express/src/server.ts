import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { webhookEndpoint } from "countersign/webhooks";
import express from "express";
import { payoutChecks, webhookChecks } from "./checks.ts";
import { closeDatabase, openDatabase } from "./database.ts";
import { settings } from "./settings.ts";

const app = express().disable("x-powered-by");
app.set("trust proxy", settings.trustProxy);

// Who is paid, and what becomes of events, stands in checks.ts.
const receivePayout = payoutEndpoint(payoutChecks);
app.post("/api/v1/transaction", receivePayout);
app.use(settings.webhookPath, webhookEndpoint(webhookChecks));

await openDatabase();
const server = app.listen(settings.port, settings.host);
const endServer = gracefulClose(server, { endpoints: [receivePayout, webhookChecks.handler] });
await once(server, "listening");
const { port } = server.address() as AddressInfo;
export const url = `http://${settings.host}:${port}`;
console.log(`listening on ${url}`);

/** What was received is answered; nothing more is taken. */
async function close(): Promise<void> {
  await endServer();
  await closeDatabase();
}
let closing: Promise<void> | undefined;
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => void (closing ??= close()));
