import {
  type TestRunner,
  defineCases,
  idempotencyStoreContract,
  type StoreHarnesses,
} from "@countersign/store-contract";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";

// Your store in place of this one: empty, on a clock that the cases move.
function makeStore(): StoreHarnesses["idempotency"] {
  const database = new Database(":memory:");
  let nowMs = 1_800_000_000_000;
  const { idempotency } = createStores({ database, now: () => nowMs });
  return {
    store: idempotency,
    advance: (ms) => void (nowMs += ms),
    close() {
      idempotency.close();
      database.close();
    },
  };
}

// What this harness does not offer; leave out what yours does.
const without = [
  "another",
  "fill",
  "engine",
  "durability",
  "transaction",
] as const;

/** Called with the functions of jest, of node:test or of another runner. */
export function testMyStore(runner: TestRunner): void {
  defineCases(idempotencyStoreContract(makeStore, { without }), {
    title: "my store",
    ...runner,
  });
}
