import { idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { describe } from "@jest/globals";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { testClock } from "./memory-harness.ts";
import { onFile, sqliteHarness, sqliteNonceHarness } from "./sqlite-harness.ts";

const inProcess = [...onFile, "another"] as const;

describe("createStores, idempotency", () => {
  testContract(
    "on a file and SQLite's clock",
    idempotencyStoreContract(() => sqliteHarness("file"), { without: [...onFile, "clock"] }),
  );
  testContract(
    "in memory and on a clock that is moved",
    idempotencyStoreContract(() => sqliteHarness("memory", testClock()), { without: inProcess }),
  );
  testContract(
    "in memory and on SQLite's clock",
    idempotencyStoreContract(() => sqliteHarness("memory"), { without: [...inProcess, "clock"] }),
  );
});

describe("createStores, nonces", () => {
  testContract(
    "on a file and SQLite's clock",
    nonceStoreContract(() => sqliteNonceHarness("file"), { without: [...onFile, "clock"] }),
  );
  testContract(
    "in memory and on a clock that is moved",
    nonceStoreContract(() => sqliteNonceHarness("memory", testClock()), { without: inProcess }),
  );
  testContract(
    "in memory and on SQLite's clock",
    nonceStoreContract(() => sqliteNonceHarness("memory"), { without: [...inProcess, "clock"] }),
  );
});
