import { defineCases, idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { describe, test } from "@jest/globals";
import { applicable } from "@countersign/test-support/runs/contract.ts";
import { testClock } from "./memory-harness.ts";
import { onFile, sqliteHarness, sqliteNonceHarness } from "./sqlite-harness.ts";

const inProcess = [...onFile, "another"] as const;

describe("createSqliteStores, idempotency", () => {
  defineCases(
    applicable(idempotencyStoreContract(() => sqliteHarness("file"), { without: [...onFile, "clock"] })),
    { describe, test, title: "on a file and SQLite's clock" },
  );
  defineCases(
    applicable(idempotencyStoreContract(() => sqliteHarness("memory", testClock()), { without: inProcess })),
    { describe, test, title: "in memory and on a clock that is moved" },
  );
  defineCases(
    applicable(idempotencyStoreContract(() => sqliteHarness("memory"), { without: [...inProcess, "clock"] })),
    { describe, test, title: "in memory and on SQLite's clock" },
  );
});

describe("createSqliteStores, nonces", () => {
  defineCases(
    applicable(nonceStoreContract(() => sqliteNonceHarness("file"), { without: [...onFile, "clock"] })),
    { describe, test, title: "on a file and SQLite's clock" },
  );
  defineCases(
    applicable(nonceStoreContract(() => sqliteNonceHarness("memory", testClock()), { without: inProcess })),
    { describe, test, title: "in memory and on a clock that is moved" },
  );
  defineCases(
    applicable(nonceStoreContract(() => sqliteNonceHarness("memory"), { without: [...inProcess, "clock"] })),
    { describe, test, title: "in memory and on SQLite's clock" },
  );
});
