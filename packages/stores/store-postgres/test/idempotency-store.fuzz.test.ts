import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createPostgresStores, migratePostgres } from "@countersign/store-postgres";
import * as fc from "fast-check";
import { Pool } from "pg";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";
import { isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";

const onPostgres = postgresUrl === undefined ? describe.skip : describe;

onPostgres("the stores", () => {
  const schema = isolatedName("pg");
  const pool = new Pool({ connectionString: postgresUrl, max: 2 });
  const { idempotency, nonces, close } = createPostgresStores({ pool, schema, pruneIntervalMs: 0 });

  beforeAll(() => migratePostgres(pool, { schema }));

  afterAll(async () => {
    close();
    await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await pool.end();
  });

  test("give back any text as key, and never two as one", async () => {
    const units = (min: number, max: number, minLength: number) =>
      fc
        .array(fc.integer({ min, max }), { minLength, maxLength: 512 })
        .map((codes) => String.fromCharCode(...codes));
    const text = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 256 }),
      units(0, 0xffff, 1),
      units(0xd800, 0xdfff, 500),
    );
    const property = fc.asyncProperty(fc.uniqueArray(text, { minLength: 1, maxLength: 8 }), async (texts) => {
      await pool.query(`TRUNCATE ${schema}.countersign_idempotency, ${schema}.countersign_nonces`);
      for (const [index, each] of texts.entries()) {
        const token = `t${index}`;
        const claim = { token, fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
        expect((await idempotency.claim(each, claim)).status).toBe("acquired");
        expect(await nonces.claim({ scope: each, nonce: each, token, retainMs: 60_000 })).toBe("fresh");
      }
      const { entries } = await idempotency.list({ state: "run", limit: 1000 });
      expect(new Set(entries.map((entry) => entry.key))).toEqual(new Set(texts));
    });
    await fc.assert(property, fuzzRuns(100));
  }, 60_000);
});
