import { gracefulClose, payoutEndpoint } from "countersign/payout";
import { webhookEndpoint } from "countersign/webhooks";
import {
  Module,
  RequestMethod,
  type MiddlewareConsumer,
  type NestModule,
  type BeforeApplicationShutdown,
  type OnApplicationShutdown,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import {
  closeRecords,
  handler,
  payoutOptions,
  setting,
  webhookOptions,
} from "./records.js";

const path = "api/v1/transaction";
const receivePayout = payoutEndpoint(payoutOptions);

@Module({})
class AppModule
  implements NestModule, BeforeApplicationShutdown, OnApplicationShutdown
{
  configure(consumer: MiddlewareConsumer): void {
    consumer
      .apply(receivePayout)
      .forRoutes({ path, method: RequestMethod.POST });
  }

  /** What was received is answered. */
  async beforeApplicationShutdown(): Promise<void> {
    await close();
  }

  onApplicationShutdown(): void {
    closeRecords();
  }
}

const app = await NestFactory.create<NestExpressApplication>(AppModule, {
  rawBody: true, // Nest's parser keeps the bytes for the checks.
  logger: ["error", "warn"],
});
// The proxies' addresses, never true.
app.set("trust proxy", setting("TRUST_PROXY").split(","));
app.use(setting("WEBHOOK_PATH"), webhookEndpoint(webhookOptions));
app.enableShutdownHooks(["SIGTERM"]);
const close = gracefulClose(app.getHttpServer(), {
  endpoints: [receivePayout, handler],
});
await app.listen(Number(setting("PORT")), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);
