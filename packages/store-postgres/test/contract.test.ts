import {
  type ContractFacility,
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { describe, test } from "@jest/globals";
import { applicable } from "../../../test/support/contract.ts";
import { describeOnPostgres } from "../../../test/support/engines.ts";
import { idempotencyHarness, nonceHarness } from "./harness.ts";

// A server that others use is not stopped: engine.test.ts has one of its own.
const always: readonly ContractFacility[] = ["engine", "durability"];

describe.each<[string, boolean, readonly ContractFacility[]]>([
  ["with a clock that the test moves", true, always],
  ["by the server's clock", false, [...always, "clock"]],
])("the contract, %s", (_name, hasClock, without) => {
  defineCases(applicable(idempotencyStoreContract(() => idempotencyHarness({ hasClock }), { without })), {
    describe: describeOnPostgres,
    test,
    title: "idempotency store",
  });
  defineCases(applicable(nonceStoreContract(() => nonceHarness({ hasClock }), { without })), {
    describe: describeOnPostgres,
    test,
    title: "nonce store",
  });
});
