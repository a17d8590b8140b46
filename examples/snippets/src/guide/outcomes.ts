import { createOutcomes, type Outcomes } from "countersign/outcomes";
import { payoutEndpoint } from "countersign/payout";
import { type SqliteStores, createStores } from "@countersign/store-sql";
import express, { type Express } from "express";
import Database from "libsql";

type Db = InstanceType<typeof Database>;

export interface Platform {
  readonly app: Express;
  readonly stores: SqliteStores<Db>;
  readonly outcomes: Outcomes<Db, "sync">;
  /** Called by what hears from the bank. */
  bankSays(key: string, failure: string | undefined, at: Date): Promise<void>;
}

export function createPlatform(
  keys: Readonly<Record<string, string>>,
  { url, apiKey }: { url: string; apiKey: string },
): Platform {
  const database = new Database(":memory:");
  database.exec(
    "CREATE TABLE payouts (key TEXT PRIMARY KEY, state TEXT) STRICT",
  );
  const insert = database.prepare(
    "INSERT INTO payouts VALUES (?, 'ORDERED')",
  );
  const update = database.prepare(
    "UPDATE payouts SET state = ? WHERE key = ?",
  );
  const stores = createStores({ database });

  // #region outcomes
  const outcomes = createOutcomes({
    stores,
    url,
    headers: { "x-api-key": apiKey },
    // The fields as the service names them. These are an example's.
    body: ({ idempotencyKey, status, settledAt, reason }) => ({
      idempotency_key: idempotencyKey,
      status,
      settled_at: settledAt,
      reason,
    }),
    expectWithinMs: 2 * 86_400_000,
    onOverdue: ({ idempotencyKey }) =>
      console.error(`no outcome of ${idempotencyKey}`),
  });
  // #endregion outcomes

  // #region receive
  const receivePayout = payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] }, // From where the service calls.
    signature: { keys },
    stores,
    // Commits with the payout: from here on its outcome is due.
    outcomes,
    pay: ({ idempotencyKey }) => insert.run(idempotencyKey),
  });

  const app = express();
  app.post("/api/v1/transaction", receivePayout);
  // #endregion receive

  // #region settle
  const bankSays: Platform["bankSays"] = async (key, failure, at) => {
    const end =
      failure === undefined
        ? { status: "SETTLED", settledAt: at }
        : { status: "FAILED", reason: failure };
    await stores.transactions.run((tx) => {
      update.run(end.status, key);
      outcomes.report(tx, { idempotencyKey: key, ...end });
    });
  };
  // #endregion settle

  return { app, stores, outcomes, bankSays };
}
