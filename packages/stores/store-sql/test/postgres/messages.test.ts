import { fromPg } from "@countersign/store-sql/pg";
import type { Database, IdempotencyClaim } from "@countersign/idempotency";
import type { TableStore } from "@countersign/idempotency/store";
import { testClock } from "@countersign/test-support/runs/after-test.ts";
import { expect, test } from "@jest/globals";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import type { PoolClient } from "pg";
import { connectClient, connectPool, openStores, newStores } from "./connections.ts";
import { claimOf, keyOf, newPayouts, nonceOf, payIn, refuseIn, singly } from "./payouts.ts";

describeOnPostgres("a payment with pg", () => {
  async function recorded(as: (database: Database<PoolClient>) => Database<PoolClient> = (same) => same) {
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
              .replaceAll(/'[0-9a-f]{40,}'/g, "'…'")
              .replace(/txid_status\(\d+\)/, "txid_status(7)"),
          );
          return query(...values);
        },
      });
    });
    const { transactions } = another({ database: as(fromPg(pool)) });
    await transactions.run(() => Promise.resolve());
    sent.length = 0;
    return { transactions, write, sent };
  }

  const begin =
    /^BEGIN; SELECT false AS is_fresh [^;]*'lock_timeout'[^;]*; INSERT INTO [^;]*countersign_nonces[^;]*; INSERT INTO [^;]*countersign_idempotency[^;]* AS added$/;
  const beginAlone =
    /^BEGIN; SELECT true AS is_fresh [^;]*; INSERT INTO [^;]*countersign_idempotency[^;]* AS added$/;
  const beginTold =
    /^BEGIN; SELECT true AS is_fresh [^;]*; INSERT INTO [^;]*countersign_idempotency[^;]* AS added; SELECT [^;]* AS id$/;
  const looked = /^SELECT kept\.key, [^;]*countersign_idempotency[^;]*\$1::text\[\]\)$/;
  const done = /^WITH restored [^;]*set_config\('synchronous_commit'[^;]*state = 'done'[^;]*$/;
  const lastStatement =
    /^SET CONSTRAINTS ALL IMMEDIATE; WITH restored [^;]*set_config\('synchronous_commit'[^;]*state = 'done'[^;]*$/;
  const insert = "INSERT INTO s.payouts (id) VALUES ($1)";

  test("with two statements takes five messages", async () => {
    const { transactions, write, sent } = await recorded();
    await payIn(transactions, claimOf([keyOf("k")], { nonce: nonceOf("n") }), async (tx) => {
      await write(tx, "one");
      await write(tx, "two");
    });
    expect(sent).toEqual([
      expect.stringMatching(begin),
      insert,
      insert,
      expect.stringMatching(lastStatement),
      "COMMIT",
    ]);
  });

  test("that is refused takes three", async () => {
    const { transactions, sent } = await recorded();
    await refuseIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    // The last one is sent alone, behind the rollback.
    expect(sent.slice(0, 3)).toEqual([
      expect.stringMatching(beginAlone),
      expect.stringMatching(/^SELECT 1 AS is_own FROM [^;]*$/),
      "ROLLBACK",
    ]);
  });

  test("that was made already takes three", async () => {
    const { transactions, sent } = await recorded();
    await payIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    sent.length = 0;
    await payIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    expect(sent).toEqual([expect.stringMatching(beginAlone), expect.stringMatching(looked), "COMMIT"]);
  });

  const outcome = "SELECT txid_status(7) AS outcome";
  const silent = (database: Database<PoolClient>) => ({ ...database, tellsRollback: undefined });

  test("by a library that does not tell a ROLLBACK takes one more, and no more for a duplicate", async () => {
    const { transactions, write, sent } = await recorded(silent);
    await payIn(transactions, claimOf([keyOf("k")]), (tx) => write(tx, "one"));
    expect(sent).toEqual([
      expect.stringMatching(beginTold),
      insert,
      expect.stringMatching(lastStatement),
      `COMMIT AND CHAIN; ${outcome}`,
      "COMMIT",
    ]);
    sent.length = 0;
    await payIn(transactions, claimOf([keyOf("k")]), () => Promise.resolve());
    expect(sent).toEqual([expect.any(String), expect.stringMatching(looked), "COMMIT"]);
  });

  test("by a library that sends single statements besides takes two more", async () => {
    const { transactions, write, sent } = await recorded((database) => singly(silent(database)));
    await payIn(transactions, claimOf([keyOf("k")]), (tx) => write(tx, "one"));
    expect(sent).toEqual([
      "BEGIN",
      expect.stringMatching(/^WITH settings [^;]* AS is_fresh, [^;]* AS id, [^;]*added\.added FROM added$/),
      insert,
      "SET CONSTRAINTS ALL IMMEDIATE",
      expect.stringMatching(done),
      "COMMIT AND CHAIN",
      outcome,
      "COMMIT",
    ]);
  });
});

describeOnPostgres("a step of lease mode", () => {
  const first: IdempotencyClaim = { token: "a", fingerprint: "f", leaseMs: 1_000, recovery: "rerun" };
  const second = { ...first, token: "b" };
  type Step = (store: TableStore<"async">, fence: number) => Promise<unknown>;

  test.each<[string, number, Step]>([
    ["a claim of a new key", 1, (store) => store.claim("new", first)],
    // The look is a statement of its own: PostgreSQL plans an insert that also reads for longer than another message takes.
    ["a duplicate", 2, (store) => store.claim("k", second)],
    ["a takeover", 3, (store) => store.claim("expired", second)],
    ["a heartbeat", 1, (store) => store.heartbeat("k", "a", 1_000)],
    ["a completion", 1, (store) => store.complete("k", "a")],
    ["a release", 2, (store) => store.release("k", "a")],
    ["a hold", 2, (store) => store.hold("k", "a", "why")],
    ["an operator's decision", 2, (store, fence) => store.resolve("expired", "done", { fence })],
    // Nothing was written: a look tells whether somebody's transaction was open.
    ["a heartbeat of a lost key", 2, (store) => store.heartbeat("k", "b", 1_000)],
  ])("takes for %s %i messages", async (_step, messages, step) => {
    const clock = testClock();
    const { idempotency, pool, schema } = await newStores({ now: clock.now });
    const expired = await idempotency.claim("expired", first);
    clock.advance(1_000);
    await idempotency.claim("k", first);
    const client = await connectClient(pool);
    let sent = 0;
    const counting = {
      query: (text: string, values?: unknown[]) => {
        sent += 1;
        return client.query(text, values);
      },
    };
    const stores = openStores(counting, { schema, now: clock.now });
    await stores.ready();
    sent = 0;
    await step(stores.idempotency, expired.status === "acquired" ? expired.fence : 0);
    expect(sent).toBe(messages);
  });
});
