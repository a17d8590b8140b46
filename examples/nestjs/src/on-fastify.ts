import {
  gracefulClose,
  payoutPlugin,
  webhookPlugin,
} from "@countersign/fastify";
import {
  Module,
  type BeforeApplicationShutdown,
  type OnApplicationShutdown,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import {
  FastifyAdapter,
  type NestFastifyApplication,
} from "@nestjs/platform-fastify";
import {
  closeRecords,
  handler,
  payoutOptions,
  setting,
  webhookOptions,
} from "./records.js";

// Who calls and how is what Fastify makes of its trustProxy: the plugins
// believe no header by themselves.
const connection = {
  clientAddress: (request: { readonly ip: string }) => request.ip,
  scheme: (request: { readonly protocol: "http" | "https" }) =>
    request.protocol,
};
const payouts = payoutPlugin({
  url: "/api/v1/transaction",
  ...connection,
  ...payoutOptions,
});

@Module({})
class AppModule implements BeforeApplicationShutdown, OnApplicationShutdown {
  /**
   * What was received is answered. Later Fastify itself closes, and refuses
   * what arrives.
   */
  async beforeApplicationShutdown(): Promise<void> {
    await close();
  }

  onApplicationShutdown(): void {
    closeRecords();
  }
}

const adapter = new FastifyAdapter({
  trustProxy: setting("TRUST_PROXY").split(","),
}); // addresses, never true
const app = await NestFactory.create<NestFastifyApplication>(
  AppModule,
  adapter,
  {
    logger: ["error", "warn"],
  },
);
await adapter.getInstance().register(payouts);
await adapter.getInstance().register(
  webhookPlugin({
    url: setting("WEBHOOK_PATH"),
    ...connection,
    ...webhookOptions,
  }),
);
app.enableShutdownHooks(["SIGTERM"]);
const close = gracefulClose(app.getHttpServer(), {
  endpoints: [payouts, handler],
});
await app.listen(Number(setting("PORT")), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);
