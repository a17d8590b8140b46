import {
  answerStoreContract,
  idempotencyStoreContract,
  nonceStoreContract,
  transactionStoreContract,
  workStoreContract,
} from "@countersign/store-contract";
import { describe } from "@jest/globals";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { histories, isWhole } from "@countersign/test-support/runs/share.ts";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import { answerHarness, idempotencyHarness, nonceHarness, paymentHarness } from "./harness.ts";

// A server that others use is not stopped: engine.long.test.ts has one of its own.
const always = ["engine", "durability"] as const;

/** Defines the contracts of the stores, by a clock that the test moves or by the server's; outside of the whole table that of transactions alone. */
export function defineContracts(clock: "moved" | "the server's"): void {
  const engine = { hasClock: clock === "moved" };
  const without = engine.hasClock ? always : ([...always, "clock"] as const);
  const contracts = {
    transactions: transactionStoreContract(() => paymentHarness(engine), { without }),
    ...(isWhole && {
      "idempotency store": idempotencyStoreContract(() => idempotencyHarness(engine), { without, histories }),
      "nonce store": nonceStoreContract(() => nonceHarness(engine), { without }),
      "store of answers": answerStoreContract(() => answerHarness(engine), { without }),
      work: workStoreContract(() => paymentHarness(engine), { without }),
    }),
  };
  describe(`the contract, by the clock: ${clock}`, () => {
    for (const [title, cases] of Object.entries(contracts)) testContract(title, cases, describeOnMysql);
  });
}
