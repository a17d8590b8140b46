import { printable } from "../printable.ts";
import { messageOf } from "../thrown.ts";
import { withinTime } from "./deadline.ts";
import { shownRecord, type KeyEntry } from "./known-record.ts";
import { oneLine } from "./store-failure.ts";

/** What the platform knows about a key: texts by name, `amount` and `beneficiary` first. */
type KeyDescription = Readonly<Record<string, string>>;

/** A description, or why there is none. */
export type Described =
  | { readonly description: KeyDescription | null }
  | { readonly descriptionError: string };

/** Asks the platform about keys; undefined where it has nothing to ask. */
export type DescribeKey = (entry: KeyEntry) => Promise<Described>;

const timeoutMs = 2000;
const patience = 3;
const maxTexts = 20;
const maxTextLength = 200;
const maxNameLength = 30;
const first = ["amount", "beneficiary"];

/**
 * Makes questions of a module's export `describe(key, record)`, which may answer by a promise. It gets the key as the store has it
 * and the record without its token. A failure never hides a key; one that is silent for two seconds, three times in a row, is not
 * asked again.
 */
export function describeBy(describe: unknown): DescribeKey | undefined {
  if (typeof describe !== "function") return undefined;
  let silent = 0;
  return async ({ key, record }) => {
    if (silent >= patience)
      return { descriptionError: "not asked any more, after three times without an answer" };
    try {
      const asked = async (): Promise<unknown> =>
        await Reflect.apply(describe, undefined, [key, { ...shownRecord(record) }]);
      const answer = await withinTime(timeoutMs, asked(), (why) => new DescribeTimeout(why));
      silent = 0;
      return { description: descriptionOf(answer) };
    } catch (error) {
      if (error instanceof DescribeTimeout) silent += 1;
      return { descriptionError: oneLine(messageOf(error)).slice(0, maxTextLength) };
    }
  };
}

class DescribeTimeout extends Error {
  override readonly name: string = "DescribeTimeout";
}

function descriptionOf(answer: unknown): KeyDescription | null {
  if (answer === undefined || answer === null) return null;
  if (typeof answer !== "object" || Array.isArray(answer)) {
    throw new TypeError(
      "describe() must give an object of texts, such as { amount, beneficiary }, or nothing",
    );
  }
  const texts = Object.entries(answer).filter(([, value]) => value !== undefined && value !== null);
  texts.sort(([one], [other]) => rank(one) - rank(other));
  return Object.fromEntries(
    texts.slice(0, maxTexts).map(([name, value]) => [name.slice(0, maxNameLength), textOf(name, value)]),
  );
}

function rank(name: string): number {
  const at = first.indexOf(name);
  return at === -1 ? first.length : at;
}

function textOf(name: string, value: unknown): string {
  if (typeof value === "string") return value.slice(0, maxTextLength);
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value);
  throw new TypeError(`describe(): ${name} must be a text or a number`);
}

/** The lines of a description, for people: pairs of a name and a text. */
export function descriptionLines(described: Described | undefined): [name: string, text: string][] {
  if (described === undefined) return [];
  if ("descriptionError" in described) return [["described", `no: ${described.descriptionError}`]];
  return Object.entries(described.description ?? {}).map(([name, text]) => [
    printable(name).replaceAll(/\s+/g, " "),
    printable(text.replaceAll(/\s+/g, " ")),
  ]);
}
