import { memoryIdempotencyStore } from "@countersign/idempotency";
import {
  defineCases,
  idempotencyStoreContract,
  type TestRunner,
} from "@countersign/store-contract";

// Your store in place of this one, empty each time. What this harness does
// not offer is declared.
const makeStore = () => {
  const store = memoryIdempotencyStore();
  return { store, close: () => store.close() };
};
const without = [
  "clock",
  "another",
  "fill",
  "engine",
  "durability",
  "transaction",
] as const;

/**
 * Called with `describe` and `test` of jest, of node:test or of another
 * runner.
 */
export function testMyStore(runner: TestRunner): void {
  defineCases(idempotencyStoreContract(makeStore, { without }), {
    title: "my store",
    ...runner,
  });
}
