import { postgresSchemaVersion } from "@countersign/store-postgres";
import { describe, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { describeOnPostgres, isolatedName, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { doubtsOf } from "../src/doctor/findings.ts";
import { serverRows, type ServerRow } from "../src/operator/postgres-store.ts";
import { run } from "./cli-bench.ts";
import type { Report } from "./doctor-bench.ts";

describeOnPostgres("countersign doctor on PostgreSQL", () => {
  test("knows that tables are missing, old, new, unlogged and without their key", async () => {
    const schema = isolatedName("doctor");
    const pool = new Pool({ connectionString: postgresUrl ?? "", max: 1 });
    const flags = ["--store-url", postgresUrl ?? "", "--schema", schema];
    const ids = async () =>
      (JSON.parse((await run(["doctor", ...flags, "--json"])).out) as Report).findings
        .map(({ id }) => id)
        .filter((id) => /^(?:tables|migration)/.test(id));
    try {
      expect(await ids()).toEqual(["tables-missing"]);
      await run(["migrate", ...flags]);
      expect(await ids()).toEqual([]);
      for (const [version, id] of [
        [postgresSchemaVersion - 1, "migration-pending"],
        [postgresSchemaVersion + 1, "tables-newer"],
      ] as const) {
        await pool.query(`UPDATE ${schema}.countersign_schema SET version = $1, oldest = $1`, [version]);
        expect(await ids()).toEqual([id]);
      }
      await pool.query(`UPDATE ${schema}.countersign_schema SET oldest = ${postgresSchemaVersion}`);
      expect(await ids()).toEqual([]);
      await pool.query(`UPDATE ${schema}.countersign_schema SET oldest = NULL`);
      expect(await ids()).toEqual(["tables-newer"]);
      await pool.query(`UPDATE ${schema}.countersign_schema SET version = ${postgresSchemaVersion}`);
      await pool.query(`ALTER TABLE ${schema}.countersign_nonces SET UNLOGGED`);
      expect(await ids()).toEqual(["tables-unlogged"]);
      await pool.query(`ALTER TABLE ${schema}.countersign_nonces SET LOGGED`);
      await pool.query(`ALTER TABLE ${schema}.countersign_nonces DROP CONSTRAINT countersign_nonces_pkey`);
      expect(await ids()).toEqual(["tables-without-key"]);
      const migrated = await run(["migrate", ...flags]);
      expect(migrated).toMatchObject({ code: 1, err: expect.stringContaining("ADD PRIMARY KEY (digest)") });
    } finally {
      await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await pool.end();
    }
  });
});

describe("serverRows", () => {
  const good: ServerRow = {
    version: "160002",
    encoding: "UTF8",
    fsync: "on",
    full_page_writes: "on",
    synchronous_commit: "on",
    standby: false,
    unlogged: "0",
    now_ms: "0",
  };

  test.each<[Partial<ServerRow>, string | undefined]>([
    [{}, undefined],
    [{ fsync: "off" }, "postgres-fsync"],
    [{ full_page_writes: "off" }, "postgres-full-page-writes"],
    [{ synchronous_commit: "off" }, "postgres-synchronous-commit"],
    [{ synchronous_commit: "local" }, undefined],
    [{ standby: true }, "postgres-standby"],
    [{ encoding: "LATIN1" }, "postgres-encoding"],
    [{ version: "120015" }, "postgres-old"],
    [{ unlogged: "1" }, "tables-unlogged"],
  ])("of %p", (difference, id) => {
    const doubts = doubtsOf(serverRows, { ...good, ...difference });
    expect(doubts.map(([doubt]) => doubt)).toEqual(id === undefined ? [] : [id]);
  });
});
