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
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { fromPg } from "@countersign/store-sql/pg";
import { createAnswers } from "@countersign/store-sql";
import type { Pool } from "pg";
import { answerHarness, idempotencyHarness, nonceHarness, paymentHarness } from "./harness.ts";
import { inOrder, libraries } from "./payouts.ts";

// A server that others use is not stopped: engine.long.test.ts has one of its own.
const always = ["engine", "durability"] as const;

const onDatabase: NonNullable<Parameters<typeof answerHarness>[1]> = ({ pool, ...options }) =>
  createAnswers({ ...options, database: inOrder(fromPg(pool as Pool)) });

/** Defines the contracts of the stores, by a clock that the test moves or by the server's; outside of the whole table those of payouts alone. */
export function defineContracts(clock: "moved" | "the server's"): void {
  const engine = { hasClock: clock === "moved" };
  const without = engine.hasClock ? always : ([...always, "clock"] as const);
  const define = (title: string, cases: Parameters<typeof testContract>[1]): void =>
    testContract(title, cases, describeOnPostgres);
  describe(`the contract, by the clock: ${clock}`, () => {
    define(
      "idempotency store",
      idempotencyStoreContract(() => idempotencyHarness(engine), { without, histories }),
    );
    define(
      "nonce store",
      nonceStoreContract(() => nonceHarness(engine), { without }),
    );
    for (const [library, as] of isWhole ? libraries : libraries.slice(0, 1)) {
      const makeStores = () => paymentHarness(engine, (database) => inOrder(as(database)));
      define(`transactions over ${library}`, transactionStoreContract(makeStores, { without }));
    }
    if (!isWhole) return;
    define(
      "store of answers",
      answerStoreContract(() => answerHarness(engine), { without: [...without, "transaction"] }),
    );
    const inTransactions = answerStoreContract(() => answerHarness(engine, onDatabase), { without });
    define(
      "store of answers beside transactions",
      inTransactions.filter(({ name }) => name.includes("transaction")),
    );
    const [whole = [], single = []] = libraries.map(([, as]) =>
      workStoreContract(() => paymentHarness(engine, (database) => inOrder(as(database))), { without }),
    );
    define("work store", whole);
    // The steps in a transaction go by a library's own statements: their texts, and their waits.
    define(
      "work store over a library that sends single statements",
      single.filter(({ name }) => /hostile|transaction|not lost|side by side/.test(name)),
    );
  });
}
