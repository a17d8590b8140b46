import { Argument, type Command } from "commander";
import { UsageError, type Lists, type Texts } from "../command-io.ts";
import { collect } from "../input.ts";
import { asciiJson } from "../output.ts";

// Safe on a terminal and between a shell's single quotes, and no flag. Everything else is escaped: text that looks alike, is invisible or
// is normalised by a clipboard must not lead to another payment's key.
const plain = /^(?![-" ])[!-&(-[\]-~]+(?: [!-&(-[\]-~]+)*$/;
export const maxKeyLength = 512;

/** A key as it is, or as an ASCII JSON string for `--key-json`. Different keys look different; JSON starts with `"` and holds no `'`. */
export function shownKey(key: string): string {
  return plain.test(key) ? key : asciiJson(key).replaceAll("'", String.raw`\u0027`);
}

export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A key as words of the next command, for a shell. */
export function keyWords(key: string): string {
  const shown = shownKey(key);
  return shown.startsWith('"') ? `--key-json ${shellWord(shown)}` : shellWord(shown);
}

export type KeyFlags = Texts<"keyJson">;

export function addKeyOptions(command: Command): Command {
  return command
    .addArgument(new Argument("[key]", "the key as keys held prints it"))
    .option("--key-json <json>", "the key as a JSON string, as keys list prints it in double quotes");
}

export type KeysFlags = Lists<"keyJson">;

export function addKeysOptions(command: Command): Command {
  return command
    .addArgument(new Argument("[key...]", "the keys as keys list prints them; - reads one a line"))
    .option("--key-json <json>", "a key as a JSON string, as keys list prints it in double quotes", collect);
}

/** Each once; for `-`, those of standard input. Throws a UsageError. */
export function readKeys(given: readonly string[], { keyJson = [] }: KeysFlags, readInput: () => Buffer) {
  const keys = given.flatMap((key) => (key === "-" ? keysOfLines(readInput()) : [key]));
  keys.push(...keyJson.map((text) => parseTextJson("--key-json", text)));
  if (keys.length === 0)
    throw new UsageError("a key is missing: give <key>, --key-json, or - and a line for each");
  for (const key of keys) assertLength("the key", key);
  return [...new Set(keys)];
}

// What looks like a key and is none would guard nothing, and its payment could be made again.
function keysOfLines(text: Buffer): readonly string[] {
  return text
    .toString("utf8")
    .split(/\r?\n/)
    .flatMap((line, index) => {
      if (line === "") return [];
      const name = `line ${index + 1} of standard input`;
      if (line.startsWith('"')) return [parseTextJson(name, line)];
      if (plain.test(line) && !line.startsWith("{")) return [line];
      throw new UsageError(
        `${name}: expected a key as keys list prints it, a JSON string if it is in double quotes`,
      );
    });
}

/** As it is or as JSON. Throws a UsageError. */
export function readKey(given: string | undefined, { keyJson }: KeyFlags): string {
  if (given !== undefined && keyJson !== undefined)
    throw new UsageError("--key-json: give the key only once");
  const key = keyJson === undefined ? given : parseTextJson("--key-json", keyJson);
  if (key === undefined) throw new UsageError("a key is missing: give <key>, or --key-json");
  assertLength("the key", key);
  return key;
}

function parseTextJson(flag: string, text: string): string {
  const message = `${flag}: expected a JSON string with its double quotes, as the list prints it`;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new UsageError(message, { cause: error });
  }
  if (typeof parsed !== "string") throw new UsageError(message);
  return parsed;
}

export type IdFlags = Lists<"idJson">;

export function addIdOptions(command: Command, argument: "[id]" | "[id...]"): Command {
  return command
    .addArgument(new Argument(argument, "the task as the list prints it"))
    .option("--id-json <json>", "the same as a JSON string, as the list prints it in double quotes", collect);
}

/** The ids as they are and as JSON, each once. Throws a UsageError. */
export function readIds(given: readonly string[], { idJson = [] }: IdFlags): readonly string[] {
  const ids = [...given, ...idJson.map((text) => parseTextJson("--id-json", text))];
  for (const id of ids) assertLength("the id", id);
  return [...new Set(ids)];
}

export function assertLength(name: string, text: string, longest: number = maxKeyLength): void {
  if (text === "" || text.length > longest)
    throw new UsageError(`${name}: expected 1 to ${longest} characters`);
}
