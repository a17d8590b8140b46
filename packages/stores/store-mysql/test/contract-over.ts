import {
  answerStoreContract,
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
  transactionStoreContract,
  workStoreContract,
} from "@countersign/store-contract";
import { describe, test } from "@jest/globals";
import { applicable } from "@countersign/test-support/runs/contract.ts";
import { isWhole } from "@countersign/test-support/runs/share.ts";
import { describeOnMysql } from "@countersign/test-support/servers/engines.ts";
import { answerHarness, idempotencyHarness, nonceHarness, paymentHarness } from "./harness.ts";

// A server that others use is not stopped: engine.long.test.ts has one of its own.
const always = ["engine", "durability"] as const;

/** Defines the contracts of the stores, by a clock that the test moves or by the server's; outside of the whole table that of transactions alone. */
export function defineContracts(clock: "moved" | "the server's"): void {
  const hasClock = clock === "moved";
  const without = hasClock ? always : ([...always, "clock"] as const);
  describe(`the contract, by the clock: ${clock}`, () => {
    defineCases(applicable(transactionStoreContract(() => paymentHarness({ hasClock }), { without })), {
      describe: describeOnMysql,
      test,
      title: "transactions",
    });
    if (!isWhole) return;
    defineCases(applicable(idempotencyStoreContract(() => idempotencyHarness({ hasClock }), { without })), {
      describe: describeOnMysql,
      test,
      title: "idempotency store",
    });
    defineCases(applicable(nonceStoreContract(() => nonceHarness({ hasClock }), { without })), {
      describe: describeOnMysql,
      test,
      title: "nonce store",
    });
    defineCases(applicable(answerStoreContract(() => answerHarness({ hasClock }), { without })), {
      describe: describeOnMysql,
      test,
      title: "store of answers",
    });
    defineCases(applicable(workStoreContract(() => paymentHarness({ hasClock }), { without })), {
      describe: describeOnMysql,
      test,
      title: "work",
    });
  });
}
