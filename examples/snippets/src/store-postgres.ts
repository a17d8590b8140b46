import type { RequestIdempotency } from "@countersign/idempotency-guard";
import { createPostgresStores, withPostgresTransaction } from "@countersign/store-postgres";
import { Pool } from "pg";

const connectionString = process.env["DATABASE_URL"];
// Two pools: behind the handlers' transactions a heartbeat of the stores would come too late.
const [keys, payouts] = [connect(5), connect(20)];
export const stores = createPostgresStores({ pool: keys });

/** A handler's payment: the row and the end of its key commit together. */
export async function pay(attempt: RequestIdempotency): Promise<void> {
  await withPostgresTransaction(payouts, async (client) => {
    await attempt.completeIn(client); // first: throws when the key is another attempt's, or paid
    await client.query("INSERT INTO payouts (idempotency_key) VALUES ($1)", [attempt.key]);
  });
}

function connect(max: number): Pool {
  const pool = new Pool({ connectionString, max });
  // Without a listener, the loss of a resting connection ends the process.
  return pool.on("error", (error) => console.error(error.message));
}
