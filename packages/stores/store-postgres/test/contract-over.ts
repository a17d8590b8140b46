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
    for (const [library, as] of isWhole ? libraries : libraries.slice(0, 1)) {
      const makeStores = () => paymentHarness({ hasClock }, (database) => inOrder(as(database)));
      defineCases(applicable(transactionStoreContract(makeStores, { without })), {
        describe: describeOnPostgres,
        test,
        title: `transactions over ${library}`,
      });
    }
    if (!isWhole) return;
    const answers = answerStoreContract(() => answerHarness({ hasClock }), {
      without: [...without, "transaction"],
    });
    defineCases(applicable(answers), { describe: describeOnPostgres, test, title: "store of answers" });
    const inTransactions = answerStoreContract(() => answerHarness({ hasClock }, onDatabase), { without });
    defineCases(
      applicable(inTransactions).filter(({ name }) => name.includes("transaction")),
      { describe: describeOnPostgres, test, title: "store of answers beside transactions" },
    );
    const [whole, single] = libraries.map(([, as]) =>
      applicable(
        workStoreContract(() => paymentHarness({ hasClock }, (database) => inOrder(as(database))), {
          without,
        }),
      ),
    );
    defineCases(whole ?? [], { describe: describeOnPostgres, test, title: "work store" });
    // The steps in a transaction go by a library's own statements: their texts, and their waits.
    const isSent = ({ name }: { readonly name: string }) =>
      /hostile|transaction|not lost|side by side/.test(name);
    defineCases((single ?? []).filter(isSent), {
      describe: describeOnPostgres,
      test,
      title: "work store over a library that sends single statements",
    });
  });
}
