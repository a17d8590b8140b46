import { payoutPlugin, webhookPlugin } from "@countersign/fastify";
import { Module, type OnApplicationShutdown } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { closeRecords, handler, pay, payoutOptions, setting, webhookOptions } from "./records.ts";

// Who calls and how is what Fastify makes of its trustProxy: the plugins believe no header by themselves.
const connection = {
  clientAddress: (request: { readonly ip: string }) => request.ip,
  scheme: (request: { readonly protocol: "http" | "https" }) => request.protocol,
};
const payouts = payoutPlugin({
  url: "/api/v1/transaction",
  ...connection,
  ...payoutOptions,
  handler: (_request, _reply, { payout, idempotency }) => {
    pay(payout, idempotency);
    return { status: "acknowledged" };
  },
});

@Module({})
class AppModule implements OnApplicationShutdown {
  /** No connection any more: what was received is answered. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all([payouts.drain(), handler.drain()]);
    closeRecords();
  }
}

const adapter = new FastifyAdapter({ trustProxy: setting("TRUST_PROXY").split(",") }); // addresses, never true
const app = await NestFactory.create<NestFastifyApplication>(AppModule, adapter, {
  logger: ["error", "warn"],
});
await adapter.getInstance().register(payouts);
await adapter
  .getInstance()
  .register(webhookPlugin({ url: setting("WEBHOOK_PATH"), ...connection, ...webhookOptions }));
app.enableShutdownHooks(["SIGTERM"]);
await app.listen(Number(setting("PORT")), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);
