import { mkdirSync, statSync } from "node:fs";
import path from "node:path";

/**
 * Creates a folder and those above it that are missing, all with `mode`. Step by step: where the system refuses a folder as if its
 * parent were missing, as /proc does, `recursive` tries again forever.
 */
export function makeFolder(folder: string, mode: number): void {
  const absolute = path.resolve(folder);
  if (isFolder(absolute)) return;
  const parent = path.dirname(absolute);
  if (parent !== absolute) makeFolder(parent, mode);
  try {
    mkdirSync(absolute, { mode });
  } catch (error) {
    // Another process may have made it in the meantime.
    if (!isFolder(absolute)) throw error;
  }
}

function isFolder(place: string): boolean {
  return statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
