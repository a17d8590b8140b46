import { lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

type Files = Iterable<readonly [file: string, text: string]>;

/** The message is what is shown. */
export class FolderError extends Error {
  override readonly name: string = "FolderError";
}

// A repository that is still empty.
const welcome = new Set([".git"]);

/** Why nothing can be written to this folder; undefined when it is missing or empty. */
function folderFault(folder: string): string | undefined {
  let entries: string[];
  try {
    entries = readdirSync(folder);
  } catch (error) {
    const code = codeOf(error);
    // A dangling link exists, too.
    if (code === "ENOENT" && !isLink(folder)) return undefined;
    if (code === "ENOTDIR" || code === "ENOENT") return `${folder} is there, and is no folder`;
    return `${folder} cannot be read (${code})`;
  }
  const others = entries.filter((entry) => !welcome.has(entry)).toSorted();
  if (others.length === 0) return undefined;
  const shown = others.slice(0, shownEntries).map((entry) => `  ${JSON.stringify(entry).slice(1, -1)}`);
  const rest = others.length - shown.length;
  const list = [...shown, ...(rest > 0 ? [`  and ${rest} more`] : [])].join("\n");
  return `${folder} is not empty:\n${list}\nNothing was written: name another folder, or empty this one.`;
}

const shownEntries = 10;

/** Writes to a folder that is missing or empty: aside first, so that a failure leaves nothing. Throws a FolderError. */
export function writeProject(folder: string, files: Files): void {
  const fault = folderFault(folder);
  if (fault !== undefined) throw new FolderError(fault);
  const undo: (() => void)[] = [];
  try {
    if (isThere(folder)) fill(folder, files, undo);
    else create(folder, files, undo);
  } catch (error) {
    for (const step of undo.toReversed()) step();
    const reason = error instanceof Error ? error.message : String(error);
    throw new FolderError(`${folder} was not written: ${reason}`, { cause: error });
  }
}

function create(folder: string, files: Files, undo: (() => void)[]): void {
  const parent = path.dirname(path.resolve(folder));
  const made = mkdirSync(parent, { recursive: true });
  if (made !== undefined) undo.push(() => remove(made));
  const aside = mkdtempSync(path.join(parent, `.${path.basename(folder)}-`));
  undo.push(() => remove(aside));
  // Where mkdtemp keeps others out, a folder of a project is like any other.
  const written = path.join(aside, "project");
  mkdirSync(written);
  writeAll(written, files);
  renameSync(written, folder);
  remove(aside);
}

// The folder itself stays, which may be the one that the shell is in; what is aside lies in it, on the same disk.
function fill(folder: string, files: Files, undo: (() => void)[]): void {
  const aside = mkdtempSync(path.join(folder, ".create-countersign-"));
  undo.push(() => remove(aside));
  writeAll(aside, files);
  for (const entry of readdirSync(aside)) {
    const place = path.join(folder, entry);
    if (isThere(place)) throw new Error(`${place} has come meanwhile`);
    renameSync(path.join(aside, entry), place);
    undo.push(() => remove(place));
  }
  remove(aside);
}

function writeAll(folder: string, files: Files): void {
  for (const [file, text] of files) {
    const place = path.join(folder, file);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, text, { flag: "wx" });
  }
}

function remove(place: string): void {
  rmSync(place, { recursive: true, force: true });
}

function isThere(place: string): boolean {
  return lstatSync(place, { throwIfNoEntry: false }) !== undefined;
}

function isLink(place: string): boolean {
  return lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return String(error.code);
}
