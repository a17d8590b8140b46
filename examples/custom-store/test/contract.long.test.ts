import {
  type ContractFacility,
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { describe, test } from "@jest/globals";
import { applicable } from "@countersign/test-support/runs/contract.ts";
import { idempotencyHarness, nonceHarness } from "./harness.ts";
import { describeOnMariadb, mariadbUrl } from "./server/mariadb.ts";

const url = mariadbUrl ?? "";
// A server that others use is not stopped: engine.test.ts has one of its own.
const always: readonly ContractFacility[] = ["engine", "durability"];

describe.each<[string, boolean, readonly ContractFacility[]]>([
  ["with a clock that the test moves", true, always],
  ["by the server's clock", false, [...always, "clock"]],
])("the contract on MariaDB, %s", (_name, hasClock, without) => {
  const setting = { url, hasClock };
  defineCases(applicable(idempotencyStoreContract(() => idempotencyHarness(setting), { without })), {
    describe: describeOnMariadb,
    test,
    title: "idempotency store",
  });
  defineCases(applicable(nonceStoreContract(() => nonceHarness(setting), { without })), {
    describe: describeOnMariadb,
    test,
    title: "nonce store",
  });
});
