import { mkdirSync, statSync } from "node:fs";
import path from "node:path";
import { reasonOf } from "./setting-error.ts";

/** The absolute path of a database file, whose folder is created when missing. Throws an Error that says what is in the way. */
export function preparedFile(file: string): string {
  const absolute = path.resolve(file);
  // What SQLite writes beside the file of a device or a pipe would go nowhere.
  if (statSync(absolute, { throwIfNoEntry: false })?.isFile() === false) throw new Error("it is no file");
  makeFolder(path.dirname(absolute));
  return absolute;
}

// Step by step: where the system refuses a folder as if its parent were missing, as /proc does, `recursive` tries again forever.
function makeFolder(folder: string): void {
  if (isFolder(folder)) return;
  const parent = path.dirname(folder);
  if (parent !== folder) makeFolder(parent);
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process may have made it in the meantime.
    if (!isFolder(folder)) throw error;
  }
}

function isFolder(place: string): boolean {
  return statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

// The driver gives the number alone: https://www.sqlite.org/rescode.html#cantopen
export function openReasonOf(error: unknown): string {
  const reason = reasonOf(error);
  return /^ConnectionFailed\b.*: 14\b/.test(reason) ? "no file can be opened or created there" : reason;
}
