import {
  idempotencyStoreContract,
  nonceStoreContract,
  transactionStoreContract,
  workStoreContract,
} from "@countersign/store-contract";
import { describe } from "@jest/globals";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { drivers } from "../../store-sql/test/sqlite/connections.ts";
import { testClock } from "./memory-harness.ts";
import { paymentHarness } from "./payment-harness.ts";
import { onFile, sqliteHarness, sqliteNonceHarness } from "./sqlite-harness.ts";
import { workHarness } from "./work-harness.ts";

// In memory, and by SQLite's clock, whose leases are waited for: sqlite-stores.long.test.ts.
describe.each(drivers)("createStores on %s, idempotency", (_driver, connect) => {
  testContract(
    "on a file and a clock that is moved",
    idempotencyStoreContract(() => sqliteHarness("file", testClock(), connect), { without: onFile }),
  );
});

describe("createStores, nonces", () => {
  testContract(
    "on a file and a clock that is moved",
    nonceStoreContract(() => sqliteNonceHarness("file", testClock()), { without: onFile }),
  );
});

describe.each(drivers)("createStores on %s, transactions", (_driver, open) => {
  describe.each(["file", "memory"] as const)("%s", (where) => {
    const makeStore = () => paymentHarness(where, undefined, { open });
    testContract("on a clock that is moved", transactionStoreContract(makeStore, { without: ["waiting"] }));
  });
});

describe.each(drivers)("createStores on %s, work", (_driver, open) => {
  describe.each([
    ["file", ["waiting"]],
    ["memory", ["waiting", "another"]],
  ] as const)("%s", (where, without) => {
    testContract(
      "on a clock that is moved",
      workStoreContract(() => workHarness(where, { open }), { without }),
    );
  });
});
