import { printable } from "../output.ts";

const mostMembers = 40;
const token = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** A name and its text, which steers no terminal. */
export type Row = readonly [name: string, text: string];

/**
 * Returns a row for each member of a JSON text that is sent, by its path, such as `amount.value`: numbers with the digits that are sent.
 * After forty rows the rest is counted. Returns none for what is not JSON.
 */
export function memberRows(json: string): readonly Row[] {
  const members = [...membersOf(parsed(json), "")];
  const more = members.length - mostMembers;
  return more > 0 ? [...members.slice(0, mostMembers), ["...", `and ${more} more`]] : members;
}

/** Rows as lines, their texts below each other. */
export function rowLines(rows: readonly Row[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
}

/** Numbers are parsed as strings: JavaScript would round them. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json.replaceAll(token, (text) => (text.startsWith('"') ? text : JSON.stringify(text))));
  } catch {
    return undefined;
  }
}

function* membersOf(value: unknown, path: string): Generator<Row> {
  const members = typeof value === "object" && value !== null ? Object.entries(value) : [];
  for (const [name, member] of members) yield* membersOf(member, path === "" ? name : `${path}.${name}`);
  if (members.length === 0 && path !== "") yield [inLine(path), inLine(textOf(value))];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function inLine(text: string): string {
  return printable(text).replaceAll("\n", String.raw`\n`);
}
