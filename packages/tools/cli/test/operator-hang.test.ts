import { migratePostgres } from "@countersign/store-postgres";
import { expect, test } from "@jest/globals";
import { Client } from "pg";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { startTcpProxy } from "@countersign/test-support/servers/tcp-proxy.ts";
import { openPostgresStore } from "../src/operator/postgres-store.ts";
import { parseStoreUrl } from "../src/operator/store-location.ts";

describeOnPostgres("openPostgresStore", () => {
  test("closes within seconds although the server hangs", async () => {
    const schema = isolatedName("hang");
    const admin = new Client({ connectionString: postgresUrl });
    await admin.connect();
    await admin.query(`CREATE SCHEMA ${schema}`);
    await migratePostgres(admin, { schema });
    const url = new URL(String(postgresUrl));
    const proxy = await startTcpProxy(Number(url.port || 5432));
    url.port = String(proxy.port);
    try {
      const location = parseStoreUrl(url.href);
      if (location.engine !== "postgres") throw new Error("no PostgreSQL");
      const store = await openPostgresStore(location, { schema, table: "countersign" }, {});
      proxy.delay(60_000);
      const startedAt = performance.now();
      await store.close();
      expect(performance.now() - startedAt).toBeLessThan(10_000);
    } finally {
      await proxy.close();
      await admin.query(`DROP SCHEMA ${schema} CASCADE`);
      await admin.end();
    }
  }, 20_000);
});
