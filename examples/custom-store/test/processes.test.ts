// The cases that need another handle, with handles that are real processes.
import {
  type ContractCase,
  type ContractOptions,
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { expect, test } from "@jest/globals";
import { idempotencyHarness, nonceHarness } from "./harness.ts";
import { describeOnMariadb, mariadbUrl } from "./server/mariadb.ts";
import { StoreProcess } from "./store-process.ts";

const url = mariadbUrl ?? "";

function inProcesses<Store, Harness extends { readonly prefix: string; close(): unknown }>(
  harness: Harness,
  storeOf: (process: StoreProcess) => Store,
) {
  const processes: StoreProcess[] = [];
  return {
    ...harness,
    async another() {
      const started = await StoreProcess.start(url, harness.prefix);
      processes.push(started);
      return storeOf(started);
    },
    async close() {
      await Promise.all(processes.map((started) => started.kill()));
      await harness.close();
    },
  };
}

function acrossProcesses(contract: (options: ContractOptions) => readonly ContractCase[]): ContractCase[] {
  const without = ["engine", "durability", "clock"] as const;
  const skipped = contract({ without: [...without, "another"] }).filter((each) => each.skipped !== undefined);
  return contract({ without }).filter(
    (each) => each.skipped === undefined && skipped.some(({ name }) => name === each.name),
  );
}

const idempotencyCases = acrossProcesses((options) =>
  idempotencyStoreContract(
    async () => inProcesses(await idempotencyHarness({ url }), ({ idempotency }) => idempotency),
    options,
  ),
);
const nonceCases = acrossProcesses((options) =>
  nonceStoreContract(async () => inProcesses(await nonceHarness({ url }), ({ nonces }) => nonces), options),
);

test("there are cases for several processes", () => {
  expect(idempotencyCases.length).toBeGreaterThanOrEqual(3);
  expect(nonceCases.length).toBeGreaterThanOrEqual(1);
});

const runner = { describe: describeOnMariadb, test };
defineCases(idempotencyCases, { ...runner, title: "an idempotency store of four processes" });
defineCases(nonceCases, { ...runner, title: "a nonce store of four processes" });
