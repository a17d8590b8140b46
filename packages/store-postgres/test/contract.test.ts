import {
  type ContractFacility,
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { describe, test } from "@jest/globals";
import { describeOnPostgres } from "../../../test/support/engines.ts";
import { idempotencyHarness, nonceHarness } from "./harness.ts";

// A disk that is full cannot be had on a server that others use; the engine is stopped in engine.test.ts.
const always: readonly ContractFacility[] = ["fill", "engine", "durability"];

describe.each<[string, boolean, readonly ContractFacility[]]>([
  ["with a clock that the test moves", true, always],
  ["by the server's clock", false, [...always, "clock"]],
])("the contract, %s", (_name, hasClock, without) => {
  defineCases(
    idempotencyStoreContract(() => idempotencyHarness({ hasClock }), { without }),
    {
      describe: describeOnPostgres,
      test,
      title: "idempotency store",
    },
  );
  defineCases(
    nonceStoreContract(() => nonceHarness({ hasClock }), { without }),
    {
      describe: describeOnPostgres,
      test,
      title: "nonce store",
    },
  );
});
