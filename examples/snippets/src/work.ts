import { createStores } from "@countersign/store-sql";
import {
  createTaskQueue,
  type TaskQueue,
} from "@countersign/idempotency/work";
import Database from "libsql";

type Db = InstanceType<typeof Database>;
const stores = createStores({ database: new Database(":memory:") });

/** Tells a partner of payouts. Begin with `start()`, end with `drain()`. */
export const notices: TaskQueue<Db, "sync"> = createTaskQueue({
  stores,
  queue: "notices",
  async atLeastOnce({ id, body }, { signal }) {
    const url = process.env["PARTNER_URL"] ?? "https://partner.example/paid";
    // Sent again after a crash between the partner's answer and our note.
    const headers = { "idempotency-key": id };
    const init = { method: "POST", headers, body, signal };
    const { ok, status } = await fetch(url, init);
    if (!ok) throw new Error(`the partner answered ${status}`);
  },
});

/** Writes what happened and its task in one transaction. */
export async function paid(key: string): Promise<void> {
  await stores.transactions.run((tx) => {
    notices.add(tx, { id: `paid:${key}`, entity: key, body: key });
  });
}
