import { idempotencyStoreContract, nonceStoreContract } from "@countersign/store-contract";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { memoryHarness, memoryNonceHarness, testClock } from "./memory-harness.ts";

const inProcess = ["another", "engine", "durability"] as const;

testContract(
  "memoryIdempotencyStore on a clock that is moved",
  idempotencyStoreContract(() => memoryHarness(testClock()), { without: [...inProcess, "transaction"] }),
);

testContract(
  "memoryIdempotencyStore on its own clock",
  idempotencyStoreContract(() => memoryHarness(), { without: [...inProcess, "transaction", "clock"] }),
);

testContract(
  "memoryNonceStore on a clock that is moved",
  nonceStoreContract(() => memoryNonceHarness(testClock()), { without: [...inProcess, "prune", "close"] }),
);

testContract(
  "memoryNonceStore on its own clock",
  nonceStoreContract(() => memoryNonceHarness(), { without: [...inProcess, "prune", "close", "clock"] }),
);
