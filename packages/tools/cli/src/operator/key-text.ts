import { Argument, type Command } from "commander";
import { UsageError, type Texts } from "../command-io.ts";
import { asciiJson } from "../output.ts";

// Safe on a terminal and between a shell's single quotes, and no flag. Everything else is escaped: text that looks alike, is invisible or
// is normalised by a clipboard must not lead to another payment's key.
const plain = /^(?![-" ])[!-&(-[\]-~]+(?: [!-&(-[\]-~]+)*$/;
const maxKeyLength = 512;

/** A key as it is, or as an ASCII JSON string for `--key-json`. Different keys look different; JSON starts with `"` and holds no `'`. */
export function shownKey(key: string): string {
  return plain.test(key) ? key : asciiJson(key).replaceAll("'", String.raw`\u0027`);
}

export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

export type KeyFlags = Texts<"keyJson">;

export function addKeyOptions(command: Command): Command {
  return command
    .addArgument(new Argument("[key]", "the key as keys held prints it"))
    .option("--key-json <json>", "the key as a JSON string, as keys list prints it in double quotes");
}

/** As it is or as JSON. Throws a UsageError. */
export function readKey(given: string | undefined, { keyJson }: KeyFlags): string {
  if (given !== undefined && keyJson !== undefined)
    throw new UsageError("--key-json: give the key only once");
  const key = keyJson === undefined ? given : parseKeyJson(keyJson);
  if (key === undefined) throw new UsageError("a key is missing: give <key>, or --key-json");
  if (key === "" || key.length > maxKeyLength)
    throw new UsageError(`the key: expected 1 to ${maxKeyLength} characters`);
  return key;
}

function parseKeyJson(text: string): string {
  const message = "--key-json: expected a JSON string with its double quotes, as keys list prints it";
  let key: unknown;
  try {
    key = JSON.parse(text);
  } catch (error) {
    throw new UsageError(message, { cause: error });
  }
  if (typeof key !== "string") throw new UsageError(message);
  return key;
}
