import { createOutcomes, type Outcomes } from "countersign/outcomes";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";

type Db = InstanceType<typeof Database>;
const database = new Database(process.env["DATABASE_FILE"] ?? ":memory:");
database.exec("CREATE TABLE IF NOT EXISTS settled (key TEXT, at TEXT)");
const insert = database.prepare("INSERT INTO settled VALUES (?, ?)");
const stores = createStores({ database });

/** Begin with `outcomes.start()`. */
export const outcomes: Outcomes<Db, "sync"> = createOutcomes({
  stores,
  url: process.env["OUTCOMES_URL"] ?? "https://service.example/outcomes",
  headers: { "x-api-key": process.env["API_KEY"] ?? "" },
});

/** Writes both or neither. The outcome is sent once this has committed. */
export async function settle(idempotencyKey: string, settledAt: Date) {
  await stores.transactions.run((tx) => {
    insert.run(idempotencyKey, settledAt.toISOString());
    outcomes.report(tx, { idempotencyKey, status: "SETTLED", settledAt });
  });
}
