import { createRedisStores } from "@countersign/store-redis";
import { createClient } from "redis";

const url = process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379";
const client = createClient({ url, disableOfflineQueue: true });
client.on("error", (error: Error) => console.error("Redis:", error.message));

/**
 * For `idempotency: { store }` and `signature: { nonces }` of an endpoint, or
 * for the single guards.
 */
export const { idempotency, nonces } = createRedisStores({
  sendCommand: (command) => client.sendCommand([...command]),
});

/** Before the server listens. */
export const connect = async (): Promise<void> =>
  void (await client.connect());
