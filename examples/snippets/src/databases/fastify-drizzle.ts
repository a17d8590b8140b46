import { fromDrizzle } from "@countersign/databases";
import { payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { createPostgresStores } from "@countersign/store-postgres";
import { createWebhookHandler } from "@countersign/webhooks";
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import { numeric, pgTable, text } from "drizzle-orm/pg-core";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { service } from "./service.ts";

const payments = pgTable("payments", {
  key: text().primaryKey(),
  iban: text().notNull(),
  amount: numeric(),
});
const events = pgTable("events", { id: text().primaryKey() });

interface Webhooks {
  readonly url: string;
  readonly basicAuth: {
    readonly username: string;
    readonly password: string;
  };
  readonly hmac: { readonly secret: string };
}

// What Fastify says of its proxies: fastify({ trustProxy: ["10.0.0.5"] }).
const connection = {
  clientAddress: (request: FastifyRequest) => request.ip,
  scheme: (request: FastifyRequest) => request.protocol,
};

// #region receive
export function receive(
  app: FastifyInstance,
  db: NodePgDatabase,
  webhooks: Webhooks,
): void {
  const stores = createPostgresStores({ database: fromDrizzle(db) });
  const payouts = payoutPlugin({
    ...service,
    ...connection,
    url: "/api/v1/transaction",
    stores,
    async pay(payout, { tx }) {
      const { idempotencyKey: key, beneficiary } = payout;
      // The digits that were signed. The field's name is agreed with the
      // service: String(payout.amount) would be "[object Object]".
      const amount = payout.amountText("/value");
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
  void app.register(payouts);
  void app.register(webhookPlugin({ ...webhooks, ...connection, handler }));
}
// #endregion receive
