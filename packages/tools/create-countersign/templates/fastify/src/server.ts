import { gracefulClose, payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { fastify, type FastifyRequest } from "fastify";
import { payoutChecks, webhookChecks } from "./checks.ts";
import { closeDatabase, openDatabase } from "./database.ts";
import { settings } from "./settings.ts";

const app = fastify({ trustProxy: settings.trustProxy, logger: { level: "warn" } });

// Who calls, and how, is what Fastify makes of these proxies.
const connection = {
  clientAddress: (request: FastifyRequest) => request.ip,
  scheme: (request: FastifyRequest) => request.protocol,
};

// Who is paid, and what becomes of events, stands in checks.ts.
const payouts = payoutPlugin({ ...payoutChecks, ...connection, url: "/api/v1/transaction" });
const webhooks = webhookPlugin({ ...webhookChecks, ...connection, url: settings.webhookPath });

// After parsers of your own, so that a hidden webhook is like an unknown route.
void app.register(payouts);
void app.register(webhooks);
app.addHook("onClose", closeDatabase);
const endServer = gracefulClose(app.server, { endpoints: [payouts, webhookChecks.handler] });

await openDatabase();
export const url = await app.listen({ port: settings.port, host: settings.host });
console.log(`listening on ${url}`);

/** What was received is answered; nothing more is taken. */
async function close(): Promise<void> {
  // First: while Fastify itself closes, it refuses what arrives.
  await endServer();
  await app.close();
}
let closing: Promise<void> | undefined;
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => void (closing ??= close()));
