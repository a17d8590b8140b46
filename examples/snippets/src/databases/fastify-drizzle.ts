import { fromDrizzle } from "@countersign/store-sql/drizzle";
import {
  gracefulClose,
  payoutPlugin,
  webhookPlugin,
} from "@countersign/fastify";
import { refuse } from "countersign/payout";
import { createStores } from "@countersign/store-sql";
import { createWebhookHandler } from "countersign/webhooks";
import { and, eq } from "drizzle-orm";
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import { numeric, pgTable, text } from "drizzle-orm/pg-core";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Pool } from "pg";

const businesses = pgTable("businesses", { id: text(), iban: text() });
const payments = pgTable("payments", {
  key: text().primaryKey(),
  iban: text().notNull(),
  amount: numeric().notNull(),
});
const events = pgTable("events", { id: text().primaryKey() });

interface Service {
  readonly keys: Readonly<Record<string, string>>;
  readonly webhookUrl: string;
  readonly basicAuth: {
    readonly username: string;
    readonly password: string;
  };
  readonly hmac: { readonly secret: string };
}

// More than zero, with at most two decimals: "10.10", not "-5" or "1e3".
const anAmount = /^(?=.*[1-9])\d{1,15}(\.\d{1,2})?$/;

// What Fastify says of its proxies: fastify({ trustProxy: ["10.0.0.5"] }).
const connection = {
  clientAddress: (request: FastifyRequest) => request.ip,
  scheme: (request: FastifyRequest) => request.protocol,
};

// At the start: process.once("SIGTERM", await receive(app, db, service));
export async function receive(
  app: FastifyInstance,
  db: NodePgDatabase & { $client: Pool },
  { keys, webhookUrl, basicAuth, hmac }: Service,
): Promise<() => Promise<void>> {
  const stores = createStores({ database: fromDrizzle(db) });
  await stores.ready(); // Rejects until `countersign migrate` has run.
  const payouts = payoutPlugin({
    ...connection,
    url: "/api/v1/transaction",
    addresses: { allow: ["192.0.2.10"] },
    signature: { keys },
    stores,
    async findBusiness({ businessId, iban }) {
      const { id } = businesses;
      const isAsked = and(eq(id, businessId), eq(businesses.iban, iban));
      return (await db.$count(businesses, isAsked)) === 1;
    },
    async pay({ idempotencyKey: key, beneficiary, amountText }, { tx }) {
      // The digits that were signed. The field's name is agreed with the
      // service.
      const amount = amountText("/value") ?? "";
      if (!anAmount.test(amount)) throw refuse("amount-invalid");
      const row = { key, iban: beneficiary.iban, amount };
      await tx.insert(payments).values(row);
    },
  });
  const handler = createWebhookHandler({
    stores,
    async fallback({ event_id: id }, { tx }) {
      await tx.insert(events).values({ id });
    },
  });
  const webhooks = { url: webhookUrl, basicAuth, hmac, handler };
  await app.register(payouts);
  await app.register(webhookPlugin({ ...webhooks, ...connection }));
  const close = gracefulClose(app.server, { endpoints: [payouts, handler] });
  return async () => {
    await close(); // What was received is answered.
    await app.close();
    stores.close();
    await db.$client.end();
  };
}
