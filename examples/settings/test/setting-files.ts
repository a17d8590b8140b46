import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll } from "@jest/globals";
import { SettingError } from "../src/setting-error.ts";

/** A folder that goes with the tests of its file. */
export const folder: string = mkdtempSync(path.join(tmpdir(), "platform-settings-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a file into the folder, an object as JSON, and gives its path. */
export function file(name: string, content: unknown): string {
  const location = path.join(folder, name);
  writeFileSync(location, typeof content === "string" ? content : JSON.stringify(content));
  return location;
}

export function refusalOf(read: () => unknown): SettingError {
  try {
    read();
  } catch (error) {
    if (error instanceof SettingError) return error;
    throw error;
  }
  throw new Error("the settings were accepted");
}
