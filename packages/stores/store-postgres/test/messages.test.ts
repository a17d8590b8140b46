import { fromPg } from "@countersign/databases";
import { expect, test } from "@jest/globals";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectPool } from "./connections.ts";
import { claimOf, keyOf, newPayouts, nonceOf, payIn, refuseIn } from "./payouts.ts";

describeOnPostgres("a payment with pg", () => {
  async function recorded() {
    const { another, schema, write } = await newPayouts();
    const pool = connectPool({ max: 1 });
    const sent: string[] = [];
    pool.on("connect", (client) => {
      const query = client.query.bind(client) as (...values: unknown[]) => unknown;
      Object.assign(client, {
        query: (...values: unknown[]) => {
          sent.push(
            String(values[0])
              .replaceAll(schema, "s")
              .replaceAll(/'[0-9a-f]{40,}'/g, "'…'"),
          );
          return query(...values);
        },
      });
    });
    const { transactions } = another({ database: fromPg(pool) });
    await transactions.run(() => Promise.resolve());
    sent.length = 0;
    return { transactions, write, sent };
  }

  const begin = `BEGIN; SELECT "s"."countersign_begin"(convert_from(decode('…', 'hex'), 'UTF8')) AS answer; SAVEPOINT countersign`;
  const insert = "INSERT INTO s.payouts (id) VALUES ($1)";

  test("with two statements takes five messages", async () => {
    const { transactions, write, sent } = await recorded();
    await payIn(transactions, claimOf([keyOf("k")], { nonce: nonceOf("n") }), async (tx) => {
      await write(tx, "one");
      await write(tx, "two");
    });
    expect(sent).toEqual([
      begin,
      insert,
      insert,
      "SET CONSTRAINTS ALL IMMEDIATE; RELEASE SAVEPOINT countersign",
      "COMMIT",
    ]);
  });

  test("that is refused takes three", async () => {
    const { transactions, sent } = await recorded();
    await refuseIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    expect(sent).toEqual([
      begin,
      expect.stringMatching(
        /^ROLLBACK TO SAVEPOINT countersign; RELEASE SAVEPOINT countersign; WITH [^;]*\nUPDATE [^;]*; WITH [^;]*\nSELECT [^;]*$/,
      ),
      "COMMIT",
    ]);
  });

  test("that was made already takes two", async () => {
    const { transactions, sent } = await recorded();
    await payIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    sent.length = 0;
    await payIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    expect(sent).toEqual([begin, "COMMIT"]);
  });
});
