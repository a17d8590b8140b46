import { explanation, quoted, type Explanation, type Remedy } from "./explanation.ts";
import { nearest } from "./nearest.ts";

/** One fault of a schema, as in `errors` of a 400 and in the `problem` of its GuardError. */
export interface SchemaFault {
  /** A JSON pointer (RFC 6901). */
  readonly pointer: string;
  /** `required`, `wrong-type` and others. */
  readonly code: string;
  /** What the member must be. */
  readonly detail: string;
}

const maxFaults = 20;

/**
 * Says which member of a payload breaks the schema, what it should be, and which member of nearly that name is there instead. Shows names
 * of members and none of their values. Throws a TypeError for what is no list of faults; the body may be anything.
 */
export function explainPayload(body: Uint8Array, faults: readonly SchemaFault[]): Explanation {
  if (!Array.isArray(faults)) throw new TypeError("explainPayload: faults must be a list");
  const [first, ...others] = faults.slice(0, maxFaults).map((fault) => explainFault(parsed(body), fault));
  if (first === undefined) return explanation("verifies", undefined, "The payload fits the schema.");
  return { ...first, details: others.map(({ sentence }) => sentence) };
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    return undefined;
  }
}

function explainFault(body: unknown, fault: SchemaFault): Explanation {
  const [what, sentence] = remedyOf(body, fault);
  return explanation(what, "payout-invalid", sentence);
}

function remedyOf(body: unknown, { pointer, code, detail }: SchemaFault): Remedy {
  const path = pointer.split("/").slice(1, 20).map(unescapedPart);
  const name = path.at(-1);
  const place = pointer === "" ? "the body" : quoted(pointer);
  const due = quotedDetail(detail);
  if (code === "wrong-type") {
    const got = kindOf(valueAt(body, path));
    return ["payload-member-type", `Send ${place} otherwise: it ${due}, and is ${got}.`];
  }
  if (code !== "required" || name === undefined) {
    return ["payload-member-value", `Send ${place} otherwise: it ${due}.`];
  }
  const holder = valueAt(body, path.slice(0, -1));
  const near = nearest(name, isRecord(holder) ? Object.keys(holder).slice(0, 1000) : []);
  if (near !== undefined) {
    const has = `the payload has ${quoted(near)} in its place`;
    return ["payload-member-name", `Call the member ${place} by that name: ${has}.`];
  }
  const elsewhere = pathOf(body, name);
  if (elsewhere !== undefined) {
    const has = `the payload has it at ${quoted(elsewhere)}`;
    return ["payload-member-place", `Put the member ${quoted(name)} at ${place}: ${has}.`];
  }
  return ["payload-member-missing", `Send the member ${place}: it ${due}.`];
}

// Of our own checks; escaped all the same, since anybody may call.
function quotedDetail(detail: string): string {
  return quoted(detail).slice(1, -1);
}

function unescapedPart(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

function valueAt(body: unknown, path: readonly string[]): unknown {
  let value = body;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

/** Where a member of this name stands, one level down or at the top. */
function pathOf(body: unknown, name: string): string | undefined {
  if (!isRecord(body)) return undefined;
  if (Object.hasOwn(body, name)) return `/${name}`;
  const holder = Object.entries(body)
    .slice(0, 1000)
    .find(([, value]) => isRecord(value) && Object.hasOwn(value, name));
  return holder === undefined ? undefined : `/${holder[0]}/${name}`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const kinds: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
  object: "an object",
  undefined: "missing",
};

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : (kinds[typeof value] ?? "something else");
}
