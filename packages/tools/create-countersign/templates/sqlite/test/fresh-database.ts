import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "platform-test-"));

/** Settings of a database that the tests have for themselves. */
export const databaseSettings = { DATABASE_FILE: join(folder, "platform.db") };

export async function removeDatabase(): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
}
