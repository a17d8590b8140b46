import { Argument, type Command } from "commander";
import { UsageError, type Texts } from "../command-io.ts";
import { asciiJson } from "../output.ts";

// ASCII that stays as it is on a terminal and between the single quotes of a shell, and is no flag. Everything else is escaped:
// what looks alike, is invisible or is normalised by a clipboard must not lead to the key of another payment.
const plain = /^(?![-" ])[!-&(-[\]-~]+(?: [!-&(-[\]-~]+)*$/;
const maxKeyLength = 512;

/**
 * A key as people see it: as it is, or as a JSON string in ASCII, which `--key-json` takes. Different keys look different; what
 * begins with a double quote is JSON, and holds no single quote.
 */
export function shownKey(key: string): string {
  return plain.test(key) ? key : asciiJson(key).replaceAll("'", String.raw`\u0027`);
}

/** A text as one word of a command line, in single quotes where the shell needs them. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

export type KeyFlags = Texts<"keyJson">;

export function addKeyOptions(command: Command): Command {
  return command
    .addArgument(new Argument("[key]", "the key as keys held prints it"))
    .option("--key-json <json>", "the key as a JSON string, as keys list prints it in double quotes");
}

/** The key that the command line gives, as it is or as JSON. Throws a UsageError. */
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
