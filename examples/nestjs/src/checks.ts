import { guardErrors } from "@countersign/express";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { type SqliteDatabase, createStores } from "@countersign/store-sql";
import { webhookHmac } from "@countersign/webhook-hmac";
import {
  type ArgumentsHost,
  Body,
  Catch,
  Controller,
  HttpCode,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Post,
} from "@nestjs/common";
import { BaseExceptionFilter, NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";

const answerRefusal = guardErrors();

/** Answers what a check refuses; every other error is left to Nest. */
@Catch()
export class RefusalFilter extends BaseExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    answerRefusal(error, http.getRequest(), http.getResponse(), () =>
      super.catch(error, host),
    );
  }
}

/** `handle` runs once for a delivery; `secrets` are the new and the old. */
export async function createApp(
  database: SqliteDatabase,
  secrets: readonly string[],
  handle: (event: unknown) => void,
): Promise<NestExpressApplication> {
  const verify = webhookHmac({ scheme: "github", secrets, limit: "25mb" });
  const once = idempotencyGuard({
    store: createStores({ database }).idempotency,
    scope: "github",
    key: (req) => req.headers["x-github-delivery"],
    // A later attempt of a delivery may have other bytes.
    fingerprint: () => "delivery",
    doneStatus: 200,
  });

  @Controller("webhooks/github")
  class GithubController {
    @Post()
    @HttpCode(200)
    receive(@Body() event: unknown): object {
      handle(event);
      return { received: true };
    }
  }

  @Module({ controllers: [GithubController] })
  class AppModule implements NestModule {
    configure(consumer: MiddlewareConsumer): void {
      consumer.apply(verify, once).forRoutes(GithubController);
    }
  }

  const app = await NestFactory.create<NestExpressApplication>(AppModule, {
    rawBody: true, // Nest's parser keeps the bytes for the checks.
    logger: ["error", "warn"],
  });
  app.useBodyParser("json", { limit: "25mb" });
  app.useGlobalFilters(new RefusalFilter(app.getHttpAdapter()));
  return app;
}
