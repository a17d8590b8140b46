import { expect, test } from "@jest/globals";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { connectPool } from "./connections.ts";
import { returnSchema, takeSchema } from "./spare-schemas.ts";

describeOnPostgres("a schema that is used again", () => {
  test("has lost its rows, and tables that are not ours", async () => {
    const pool = connectPool();
    const schema = await takeSchema(pool);
    await pool.query(`CREATE TABLE ${schema}.payouts (id text);
INSERT INTO ${schema}.countersign_nonces VALUES ('\\x00', 'token', now())`);
    await returnSchema(pool, schema);
    expect(await takeSchema(pool)).toBe(schema);
    const { rows } = await pool.query(`SELECT to_regclass('${schema}.payouts') AS payouts,
(SELECT count(*)::int FROM ${schema}.countersign_nonces) AS nonces`);
    expect(rows).toEqual([{ payouts: null, nonces: 0 }]);
    await returnSchema(pool, schema);
  });

  test.each([
    ["a column", "ALTER TABLE countersign_nonces ADD COLUMN more int"],
    ["an index", "DROP INDEX countersign_nonces_until"],
    ["a privilege", "GRANT SELECT ON countersign_nonces TO PUBLIC"],
    ["a function", "CREATE FUNCTION meddle() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
    [
      "a trigger",
      "CREATE TRIGGER kept BEFORE UPDATE ON countersign_nonces EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    ],
    ["the version", "UPDATE countersign_schema SET version = version + 1"],
    ["a table that is gone", "DROP TABLE countersign_answers"],
  ])("is given to nobody with another state: %s", async (_what, change) => {
    const pool = connectPool({ max: 1 });
    const schema = await takeSchema(pool);
    await pool.query(`SET search_path = ${schema}, pg_catalog`);
    await pool.query(change);
    await returnSchema(pool, schema);
    const { rows } = await pool.query("SELECT to_regnamespace($1) AS found", [schema]);
    expect(rows).toEqual([{ found: null }]);
  });
});
