// The rights that the page of the package gives the pool's user.
import { readFileSync } from "node:fs";
import { fromMysql2 } from "@countersign/store-sql/mysql2";
import { createAnswers, createStores, migrate } from "@countersign/store-sql";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { describeOnMysql, isolatedName, mysqlUrl } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";
import { connectPool } from "./connections.ts";

const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;

describeOnMysql("a user with the grants of the page", () => {
  test("can do all that the stores do, and make no table", async () => {
    const name = isolatedName("grant");
    const owner = connectPool();
    await owner.query(`CREATE DATABASE ${name}`);
    afterTest(() => owner.query(`DROP DATABASE ${name}`));
    await owner.query(`CREATE USER ${name}@'%'`);
    afterTest(() => owner.query(`DROP USER ${name}@'%'`));
    const grant = readFileSync(
      new URL("../../../../../site/snippets/grants-mysql.sql", import.meta.url),
      "utf8",
    ).replaceAll("platform", name);
    await owner.query(grant);
    const urlOf = (user?: string): string => {
      const url = new URL(mysqlUrl ?? "");
      if (user !== undefined) [url.username, url.password] = [user, ""];
      url.pathname = `/${name}`;
      return url.href;
    };
    await migrate(fromMysql2(connectPool({ uri: urlOf() })));

    const database = fromMysql2(connectPool({ uri: urlOf(name) }));
    const stores = createStores({ database, pruneIntervalMs: 0 });
    const answers = createAnswers({ database, pruneIntervalMs: 0 });
    afterTest(() => stores.close());
    const { idempotency, nonces, transactions, work } = stores;
    await stores.ready();
    await idempotency.claim("k", claim);
    await idempotency.hold("k", "a", "why");
    await idempotency.resolve("k", "done", { fence: (await idempotency.read("k"))?.fence ?? 0 });
    expect(await idempotency.list({ state: "done", limit: 10 })).toMatchObject({ entries: [{ key: "k" }] });
    expect(await nonces.claim({ scope: "s", nonce: "n", token: "a", retainMs: 1_000 })).toBe("fresh");
    const paid = { key: "paid", token: "b", fingerprint: "f" };
    await transactions.run(async (tx) => {
      const limits = { recovery: "rerun", leaseMs: 60_000, waitMs: 1_000, idleTimeoutMs: 5_000 } as const;
      await transactions.begin(tx, { ...limits, keys: [paid], nonce: undefined });
      await transactions.keep(tx, [paid], false);
    });
    expect(await idempotency.read("paid")).toMatchObject({ state: "done" });
    await answers.keep("b", Buffer.from("paid"));
    expect(await work.summaries()).toEqual([]);
    await Promise.all([idempotency.prune(), nonces.prune(), work.prune()]);

    const elsewhere = migrate(database, { table: "other" });
    await expect(elsewhere).rejects.toMatchObject({ cause: { errno: 1142 } });
  });
});
