// An outcome in its default form, which is that of the sandbox and of the example platform.
import { createOutcomes } from "countersign/outcomes";
import { startSandbox } from "@countersign/devtools/sandbox";
import { createStores } from "@countersign/store-sql";
import { expect, test } from "@jest/globals";
import Database from "libsql";
import { afterTest } from "../support/runs/after-test.ts";
import { eventually } from "../support/runs/eventually.ts";

test("the sandbox gets what the example platform sends", async () => {
  const sandbox = await startSandbox({ apiKey: "test-key" });
  afterTest(() => sandbox.close());
  const stores = createStores({ database: new Database(":memory:") });
  afterTest(() => stores.close());
  const outcomes = createOutcomes({
    stores,
    url: `${sandbox.url}/sandbox/confirmations`,
    headers: { "x-api-key": "test-key" },
  });
  afterTest(() => outcomes.drain());
  outcomes.start();
  await stores.transactions.run((tx) =>
    outcomes.report(tx, {
      idempotencyKey: "payout-1.funding-1.business-1",
      business_id: "biz_1",
      status: "executed",
      settledAt: new Date(0),
    }),
  );
  await eventually(() => sandbox.confirmations().length > 0);
  expect(sandbox.confirmations().map(({ body }) => body)).toEqual([
    {
      idempotency_key: "payout-1.funding-1.business-1",
      business_id: "biz_1",
      status: "executed",
      settled_at: "1970-01-01T00:00:00.000Z",
    },
  ]);
});
