import type { Command } from "commander";
import { UsageError, type CommandIo } from "../command-io.ts";

const longest = { by: 128, note: 512 } as const;

/** The flags that tell who decides, and why. */
export interface EntryFlags {
  readonly by?: string | undefined;
  readonly note?: string | undefined;
}

/** Who decides, and why. */
export interface Entry {
  readonly by: string;
  readonly note?: string | undefined;
}

export function addEntryOptions(command: Command): Command {
  return command
    .option("--by <name>", "who decides, for the record (default: your login name)")
    .option("--note <text>", "why, for the record: a ticket, what the bank has said");
}

/** Reads the flags. Throws a UsageError, also where nobody knows who runs the command. */
export function readEntry(flags: EntryFlags, { login }: CommandIo): Entry {
  const by = flags.by ?? login?.();
  if (by === undefined) throw new UsageError("--by: the system knows no name for you, give one");
  assertLength("by", by);
  return { by, ...readNote(flags.note) };
}

/** A note as a store keeps it; nothing for an empty one. Throws a UsageError. */
export function readNote(note: string | undefined): { readonly note?: string } {
  if (note === undefined || note.trim() === "") return {};
  assertLength("note", note);
  return { note };
}

function assertLength(name: keyof typeof longest, text: string): void {
  if (text.length >= 1 && text.length <= longest[name]) return;
  throw new UsageError(`--${name}: expected 1 to ${longest[name]} characters`);
}
