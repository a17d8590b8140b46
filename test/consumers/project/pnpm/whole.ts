import { strictEqual } from "node:assert/strict";
import {
  cachedKeys,
  captureRawBody,
  createInbox,
  createStores,
  createWebhookHandler,
  directoryKeys,
  guardErrors,
  isGuardError,
  jwksKeys,
  keyUse,
  memoryIdempotencyStore,
  memoryNonceStore,
  payoutEndpoint,
  payoutOf,
  webhookEndpoint,
  type CreateInboxOptions,
  type CreateWebhookHandlerOptions,
  type IdempotencyStore,
  type KeySource,
  type PayoutEndpointOptions,
  type SqliteDatabase,
} from "countersign";
import express, { type Express } from "express";

// Their types are inferred, so that each has to have a name in the declarations of whoever has no other package of ours.
export const onSqlite = (database: SqliteDatabase) => createStores({ database });
export const inMemory = () => ({ nonces: memoryNonceStore(), idempotency: memoryIdempotencyStore() });
export const livingKeys = (url: string, source: KeySource) => [
  jwksKeys(url),
  directoryKeys(url),
  cachedKeys(source),
];
export const uses = () => keyUse();
export const inboxOf = (options: CreateInboxOptions<SqliteDatabase, "sync">) =>
  createInbox(options).on("buyer.status_changed", () => undefined, { latestOnly: true });
export const createPayoutEndpoint = (options: PayoutEndpointOptions) => payoutEndpoint(options);
export const errors = (options: Parameters<typeof guardErrors>[0]) => guardErrors(options);
export const createHooks = (options: CreateWebhookHandlerOptions) =>
  webhookEndpoint({
    basicAuth: { credentials: [{ username: "service", password: "test-password" }] },
    hmac: { secrets: ["test-secret"] },
    handler: createWebhookHandler(options).onAny((event, { attempt }) => [event.type, attempt]),
  });

export function createApp(payouts: PayoutEndpointOptions, store: IdempotencyStore): Express {
  const app = express();
  app.use(express.json({ verify: captureRawBody }));
  app.use("/hooks/test", createHooks({ store, fallback: "ignore" }));
  app.post("/pay", createPayoutEndpoint(payouts), (req, res) => {
    const fence: number | undefined = req.idempotency?.fence;
    const keyid: string | undefined = req.signature?.keyid;
    res.json({ fence, keyid, bytes: req.rawBody?.length, key: payoutOf(req).idempotencyKey });
  });
  app.use(errors({}));
  return app;
}

strictEqual(isGuardError(new Error("another one")), false);
