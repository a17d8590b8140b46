import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeOnPostgres, postgresUrl } from "@countersign/test-support/servers/engines.ts";
import { expect, test } from "@jest/globals";

const script = fileURLToPath(new URL("lost-sessions.mjs", import.meta.url));

// The libraries whose pools are the app's own: the others open theirs, and listen (lost-client.long.test.ts of store-sql).
describeOnPostgres("a library that is opened as its page prints it", () => {
  test.each(["pg", "Drizzle", "Kysely"])(
    "lets the process live when connections are lost: %s",
    async (library) => {
      const env = { ...process.env, DATABASE_URL: postgresUrl };
      const { stdout } = await promisify(execFile)(process.execPath, [script, library], { env });
      expect(stdout).toBe("rolled back, goes on\n");
    },
  );
});
