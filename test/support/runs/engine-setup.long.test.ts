import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { mariadbPrograms, mysqlProgram, postgresFolder, redisServer } from "../servers/server-binaries.mjs";

const setup = new URL("engine-setup.mjs", import.meta.url).href;

/** What a run of the set-up makes of its environment. `patterns`: those of jest's command line. */
function setUp(env: Record<string, string>, patterns: string[] = []) {
  const script = `
    import setUpEngines, { leftOutOfMysql, stopStartedServers } from ${JSON.stringify(setup)};
    await setUpEngines({ testPathPatterns: { patterns: ${JSON.stringify(patterns)} } });
    const { DATABASE_URL: postgres, REDIS_URL: redis, MYSQL_URL: mysql } = process.env;
    console.log(JSON.stringify({ urls: { postgres, redis, mysql }, leftOut: leftOutOfMysql() }));
    await stopStartedServers();`;
  const { CI: _, DATABASE_URL: __, REDIS_URL: ___, MYSQL_URL: ____, ...rest } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    env: { ...rest, ...env },
    cwd: fileURLToPath(new URL("../../..", import.meta.url)),
  });
  const said = stdout === "" ? {} : (JSON.parse(stdout) as { urls?: unknown; leftOut?: string });
  return { status, stderr, urls: said.urls, leftOut: said.leftOut };
}

const none = { DATABASE_URL: "", REDIS_URL: "", MYSQL_URL: "" };

describe("engine-setup", () => {
  test("names what is not tested when it is told to use no server", () => {
    const { status, stderr, urls } = setUp(none, ["test/faults"]);
    expect({ status, urls }).toEqual({ status: 0, urls: { postgres: "", redis: "", mysql: "" } });
    expect(stderr).toMatch(/NOT TESTED: PostgreSQL is missing/);
    expect(stderr).toMatch(/NOT TESTED: Redis is missing/);
    expect(stderr).toMatch(/NOT TESTED: MariaDB is missing/);
  });

  test("tells what was not tested for want of a MySQL, where a selected test uses a server", () => {
    const withoutMysql = { ...none, MYSQL_FOLDER: "/nowhere" };
    // That of PATH needs no loader; one that was unpacked is hidden here.
    const isInstalled = mysqlProgram()?.args.length === 0;
    const said = isInstalled ? undefined : expect.stringMatching(/^MySQL is missing on this machine/);
    expect(setUp(withoutMysql, ["test/faults"]).leftOut).toEqual(said);
    expect(setUp(withoutMysql, ["packages/checks/raw-body"]).leftOut).toBeUndefined();
  });

  test.each(["true", "1"])("fails for want of a server with CI=%s", (CI) => {
    const { status, stderr } = setUp({ ...none, CI }, ["test/faults"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/is missing on this machine/);
  });

  test("asks for nothing when no selected test uses a server", () => {
    const { status, stderr } = setUp({ ...none, CI: "true" }, ["packages/checks/raw-body"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test.each([
    ["DATABASE_URL", "postgres://payer:hidden-secret@127.0.0.1:1/test"],
    ["REDIS_URL", "redis://payer:hidden-secret@127.0.0.1:1"],
    ["MYSQL_URL", "mysql://payer:hidden-secret@127.0.0.1:1/test"],
  ])("fails when the given %s does not answer, and keeps its password to itself", (variable, url) => {
    const { status, stderr } = setUp({ ...none, [variable]: url });
    expect(status).toBe(1);
    expect(stderr).toContain(`${variable} is set, but no `);
    expect(stderr).not.toContain("hidden-secret");
  });

  const programs = [postgresFolder(), redisServer(), mariadbPrograms().server];
  const described = programs.includes(undefined) ? test.skip : test;
  described("finds the servers of this machine or starts its own", () => {
    const { status, urls } = setUp({}, ["test/faults"]);
    expect(status).toBe(0);
    expect(urls).toEqual({
      postgres: expect.stringMatching(/^postgres:\/\/postgres@127\.0\.0\.1:\d+\//),
      redis: expect.stringMatching(/^redis:\/\/127\.0\.0\.1:\d+$/),
      mysql: expect.stringMatching(/^mysql:\/\/root@127\.0\.0\.1:\d+\/test$/),
    });
  });
});
