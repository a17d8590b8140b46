import {
  answerStoreContract,
  idempotencyStoreContract,
  nonceStoreContract,
  transactionStoreContract,
  workStoreContract,
} from "@countersign/store-contract";
import { describe } from "@jest/globals";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { isWhole } from "@countersign/test-support/runs/share.ts";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { fromPg } from "@countersign/databases";
import { createPostgresAnswers } from "@countersign/store-postgres";
import type { Pool } from "pg";
import { answerHarness, idempotencyHarness, nonceHarness, paymentHarness } from "./harness.ts";
import { inOrder, libraries } from "./payouts.ts";

// A server that others use is not stopped: engine.long.test.ts has one of its own.
const always = ["engine", "durability"] as const;

const onDatabase: NonNullable<Parameters<typeof answerHarness>[1]> = ({ pool, ...options }) =>
  createPostgresAnswers({ ...options, database: inOrder(fromPg(pool as Pool)) });

/** Defines the contracts of the stores, by a clock that the test moves or by the server's; outside of the whole table those of payouts alone. */
export function defineContracts(clock: "moved" | "the server's"): void {
  const hasClock = clock === "moved";
  const without = hasClock ? always : ([...always, "clock"] as const);
  describe(`the contract, by the clock: ${clock}`, () => {
    testContract(
      "idempotency store",
      idempotencyStoreContract(() => idempotencyHarness({ hasClock }), { without }),
      describeOnPostgres,
    );
    testContract(
      "nonce store",
      nonceStoreContract(() => nonceHarness({ hasClock }), { without }),
      describeOnPostgres,
    );
    for (const [library, as] of isWhole ? libraries : libraries.slice(0, 1)) {
      const makeStores = () => paymentHarness({ hasClock }, (database) => inOrder(as(database)));
      testContract(
        `transactions over ${library}`,
        transactionStoreContract(makeStores, { without }),
        describeOnPostgres,
      );
    }
    if (!isWhole) return;
    const answers = answerStoreContract(() => answerHarness({ hasClock }), {
      without: [...without, "transaction"],
    });
    testContract("store of answers", answers, describeOnPostgres);
    const inTransactions = answerStoreContract(() => answerHarness({ hasClock }, onDatabase), { without });
    testContract(
      "store of answers beside transactions",
      inTransactions.filter(({ name }) => name.includes("transaction")),
      describeOnPostgres,
    );
    const [whole, single] = libraries.map(([, as]) =>
      workStoreContract(() => paymentHarness({ hasClock }, (database) => inOrder(as(database))), { without }),
    );
    testContract("work store", whole ?? [], describeOnPostgres);
    // The steps in a transaction go by a library's own statements: their texts, and their waits.
    const isSent = ({ name }: { readonly name: string }) =>
      /hostile|transaction|not lost|side by side/.test(name);
    testContract(
      "work store over a library that sends single statements",
      (single ?? []).filter(isSent),
      describeOnPostgres,
    );
  });
}
