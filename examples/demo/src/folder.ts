import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { reasonOf, SettingError } from "@countersign/example-settings";
import { DemoStartError } from "./platform.ts";

/** A new folder among the system's temporary ones. Throws a SettingError. */
export function temporaryFolder(prefix: string): string {
  try {
    return mkdtempSync(path.join(tmpdir(), prefix));
  } catch (error) {
    throw new SettingError("TMPDIR", `a folder in which this user may write (${reasonOf(error)})`);
  }
}

/** The folder `name` in `parent`, which stays. Throws a DemoStartError. */
export function lastingFolder(parent: string, name: string): string {
  const folder = path.join(parent, name);
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new DemoStartError(`the folder for keys, log and database cannot be made (${reasonOf(error)})`);
  }
  return folder;
}
