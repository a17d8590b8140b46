// The cases that need another handle, with handles that are real processes on one file.
import {
  type ContractCase,
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { describe, expect, test } from "@jest/globals";
import type { ContractOptions } from "../dist/harness.js";
import { sqliteHarness, sqliteNonceHarness } from "./sqlite-harness.ts";
import { StoreProcess } from "./store-process.ts";

async function inProcesses<Store, Harness extends { readonly path: string; close(): unknown }>(
  harness: Harness,
  storeOf: (process: StoreProcess) => Store,
) {
  const processes: StoreProcess[] = [];
  return {
    ...harness,
    async another() {
      const started = await StoreProcess.start(harness.path);
      processes.push(started);
      return storeOf(started);
    },
    async close() {
      await Promise.all(processes.map((started) => started.end()));
      harness.close();
    },
  };
}

function acrossProcesses(contract: (options?: ContractOptions) => readonly ContractCase[]): ContractCase[] {
  const names = contract({ without: ["another"] }).filter(({ skipped }) => skipped !== undefined);
  return contract().filter(({ name }) => names.some((skipped) => skipped.name === name));
}

const idempotencyCases = acrossProcesses((options) =>
  idempotencyStoreContract(
    () => inProcesses(sqliteHarness("file"), ({ idempotency }) => idempotency),
    options,
  ),
);
const nonceCases = acrossProcesses((options) =>
  nonceStoreContract(() => inProcesses(sqliteNonceHarness("file"), ({ nonces }) => nonces), options),
);

test("there are cases for several processes", () => {
  expect(idempotencyCases.length).toBeGreaterThanOrEqual(2);
  expect(nonceCases.length).toBeGreaterThanOrEqual(1);
});

defineCases(idempotencyCases, { describe, test, title: "an idempotency store of four processes" });
defineCases(nonceCases, { describe, test, title: "a nonce store of four processes" });
