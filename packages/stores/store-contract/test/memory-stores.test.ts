import { defineCases, idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { describe, test } from "@jest/globals";
import { applicable } from "@countersign/test-support/runs/contract.ts";
import { memoryHarness, memoryNonceHarness, testClock } from "./memory-harness.ts";

const inProcess = ["another", "engine", "durability"] as const;

defineCases(
  applicable(
    idempotencyStoreContract(() => memoryHarness(testClock()), { without: [...inProcess, "transaction"] }),
  ),
  { describe, test, title: "memoryIdempotencyStore on a clock that is moved" },
);

defineCases(
  applicable(
    idempotencyStoreContract(() => memoryHarness(), { without: [...inProcess, "transaction", "clock"] }),
  ),
  { describe, test, title: "memoryIdempotencyStore on its own clock" },
);

defineCases(
  applicable(
    nonceStoreContract(() => memoryNonceHarness(testClock()), { without: [...inProcess, "prune", "close"] }),
  ),
  { describe, test, title: "memoryNonceStore on a clock that is moved" },
);

defineCases(
  applicable(
    nonceStoreContract(() => memoryNonceHarness(), { without: [...inProcess, "prune", "close", "clock"] }),
  ),
  { describe, test, title: "memoryNonceStore on its own clock" },
);
