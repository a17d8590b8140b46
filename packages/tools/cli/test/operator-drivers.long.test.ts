// What an operator does, in projects that have one driver alone.
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { freePort } from "@countersign/test-support/servers/private-process.mjs";
import { createServer, type Server } from "node:net";
import { type Run, spawnCli, temporaryFolder } from "./cli-bench.ts";
import { installedWith } from "./installed-with.ts";
import { flagsOf, sqlServers, type Place } from "./sql-places.ts";

const folder = temporaryFolder();

/** All drivers of SQL servers: what a row does not name is missing in its project. */
const drivers = ["pg", "postgres", "mysql2"];
const projects = [
  ["PostgreSQL", "pg"],
  ["PostgreSQL", "postgres"],
  ["MariaDB", "mysql2"],
] as const;

for (const [engine, driver] of projects) {
  const server = sqlServers.find(({ name }) => name === engine)!;
  server.describe(`the command on ${engine}, in a project that has ${driver} alone`, () => {
    const missing = drivers.filter((one) => one !== driver);
    const cli = installedWith(Object.fromEntries(missing.map((one) => [one, undefined])), folder);
    let place: Place;
    beforeEach(() => {
      place = server.open();
    });
    afterEach(() => place.close());

    const command = (...args: readonly string[]): Promise<Run> => {
      const [, url = "", ...names] = flagsOf(server, place);
      return spawnCli([...args, ...names], { env: { STORE_URL: url }, cwd: folder, cli });
    };

    test("migrates, twice, and operates the stores", async () => {
      expect(await command("migrate")).toMatchObject({
        code: 0,
        err: "",
        out: expect.stringContaining("created the tables"),
      });
      expect(await command("migrate")).toMatchObject({
        code: 0,
        err: "",
        out: expect.stringContaining("nothing to do"),
      });
      expect(await place.tables()).toHaveLength(8);
      expect(await command("keys", "held")).toMatchObject({ code: 0, err: "" });
      const key = "payout:op-7.from.to";
      const enter = ["keys", "restore", key, "--note", "TICKET-1", "--yes"];
      expect(await command(...enter)).toMatchObject({ code: 0, err: "" });
      const shown = await command("keys", "show", key, "--json");
      expect(JSON.parse(shown.out)).toMatchObject({ key, state: "done" });
      for (const name of ["inbox", "prune"]) expect(await command(name)).toMatchObject({ code: 0, err: "" });
      // Test servers are not durable, which the doctor finds.
      expect(await command("doctor", "--json")).toMatchObject({ code: expect.any(Number), err: "" });
    });

    test("says in one line that there is no server", async () => {
      const env = { STORE_URL: `${server.url.split(":")[0]}://u:s3cret@127.0.0.1:${await freePort()}/d` };
      const { code, out, err } = await spawnCli(["migrate"], { env, cwd: folder, cli });
      expect({ code, out }).toEqual({ code: 3, out: "" });
      expect(err).toMatch(/^error: \S+ cannot be reached: the connection was refused \(ECONNREFUSED\)\n$/);
    });

    describe("that never answers", () => {
      let silent: Server;
      afterEach(() => void silent.close());

      test("ends in one line", async () => {
        silent = createServer((socket) => socket.on("error", () => {}).resume());
        const port = await freePort();
        await new Promise<void>((resolve) => silent.listen(port, "127.0.0.1", resolve));
        const env = { STORE_URL: `${server.url.split(":")[0]}://u:s3cret@127.0.0.1:${port}/d` };
        const { code, out, err } = await spawnCli(["keys", "held"], { env, cwd: folder, cli });
        expect({ code, out }).toEqual({ code: 3, out: "" });
        expect(err).toMatch(/^error: \S+ cannot be reached: [^\n]+\n$/);
      });
    });
  });
}
