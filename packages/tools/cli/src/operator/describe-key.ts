import { messageOf } from "../command-io.ts";
import { printableLine } from "../output.ts";
import { shownRecord } from "./records.ts";
import type { Described, DescribeKey } from "./store.ts";
import { oneLine, withinTime } from "./store-failure.ts";

const timeoutMs = 2000;
const maxTexts = 20;
const maxTextLength = 200;
const maxNameLength = 30;

/**
 * Calls a module's export `describe(key, record)`, which may be async, with the record without its token. A failure, or no answer within
 * two seconds, never hides a key.
 */
export function describeBy(describe: unknown): DescribeKey | undefined {
  if (typeof describe !== "function") return undefined;
  return async ({ key, record }) => {
    try {
      const asked = async (): Promise<unknown> =>
        await Reflect.apply(describe, undefined, [key, { ...shownRecord(record) }]);
      return { description: descriptionOf(await withinTime(timeoutMs, asked(), (why) => new Error(why))) };
    } catch (error) {
      return { descriptionError: oneLine(messageOf(error)).slice(0, maxTextLength) };
    }
  };
}

function descriptionOf(answer: unknown): Readonly<Record<string, string>> | null {
  if (answer === undefined || answer === null) return null;
  if (typeof answer !== "object" || Array.isArray(answer)) {
    throw new TypeError(
      "describe() must give an object of texts, such as { amount, beneficiary }, or nothing",
    );
  }
  const texts = Object.entries({ amount: undefined, beneficiary: undefined, ...answer })
    .filter(([, value]: [string, unknown]) => value !== undefined && value !== null)
    .slice(0, maxTexts);
  return Object.fromEntries(
    texts.map(([name, value]) => [name.slice(0, maxNameLength), textOf(name, value)]),
  );
}

function textOf(name: string, value: unknown): string {
  if (typeof value === "string") return value.slice(0, maxTextLength);
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value);
  throw new TypeError(`describe(): ${name} must be a text or a number`);
}

export function descriptionFacts(described: Described | undefined): [name: string, text: string][] {
  if (described === undefined) return [];
  if ("descriptionError" in described) return [["described", `no: ${described.descriptionError}`]];
  return Object.entries(described.description ?? {}).map(([name, text]) => [
    printableLine(name),
    printableLine(text),
  ]);
}
