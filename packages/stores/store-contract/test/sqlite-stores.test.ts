import { defineCases, idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { describe, test } from "@jest/globals";
import { applicable } from "@countersign/test-support/runs/contract.ts";
import { drivers } from "../../store-sqlite/test/connections.ts";
import { testClock } from "./memory-harness.ts";
import { onFile, sqliteHarness, sqliteNonceHarness } from "./sqlite-harness.ts";

// In memory, and by SQLite's clock, whose leases are waited for: sqlite-stores.long.test.ts.
describe.each(drivers)("createSqliteStores on %s, idempotency", (_driver, connect) => {
  defineCases(
    applicable(
      idempotencyStoreContract(() => sqliteHarness("file", testClock(), connect), { without: onFile }),
    ),
    { describe, test, title: "on a file and a clock that is moved" },
  );
});

describe("createSqliteStores, nonces", () => {
  defineCases(
    applicable(nonceStoreContract(() => sqliteNonceHarness("file", testClock()), { without: onFile })),
    { describe, test, title: "on a file and a clock that is moved" },
  );
});
