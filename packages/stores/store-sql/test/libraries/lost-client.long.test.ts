// A session that the server ends while the work waits. pg tells it by an `error` event, which ends a process that does not listen.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { describeOnPostgres } from "@countersign/test-support/servers/engines.ts";
import { servers } from "./table/row.ts";

const script = fileURLToPath(new URL("lost-client.mjs", import.meta.url));

/** What the process has said, and whether it lived to its end. */
async function live(library: string): Promise<{ readonly said: string; readonly isAlive: boolean }> {
  const env = { ...process.env, DATABASE_URL: servers.postgresql };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [script, library], { env });
    return { said: stdout, isAlive: true };
  } catch (error) {
    return { said: String(error), isAlive: false };
  }
}

describeOnPostgres("a process whose work waits past the end of its session", () => {
  test.each([
    "pg",
    "Drizzle",
    "Kysely, whose pool's clients have a listener",
    "Knex",
    "TypeORM",
    "Sequelize",
    "MikroORM",
    "postgres.js",
  ])("goes on: %s", async (library) => {
    expect(await live(library)).toEqual({
      // Behind what some libraries say of the error.
      said: expect.stringMatching(/rolled back, goes on, goes on\n$/),
      isAlive: true,
    });
  });

  // Kysely gives nobody its pool. Once this fails, the page need not ask for a listener any more.
  test("ends, as the page says: Kysely", async () => {
    const { said, isAlive } = await live("Kysely");
    expect(isAlive).toBe(false);
    expect(said).toContain("Unhandled 'error' event");
  });
});
