import { nearest } from "@countersign/core/internal";
import { explanation, quoted, verifies, type Explanation, type Remedy } from "./explanation.ts";

/** One fault of a schema, as in `errors` of a 400 and in the `problem` of its GuardError. */
export interface SchemaFault {
  /** A JSON pointer (RFC 6901). */
  readonly pointer: string;
  /** `required`, `wrong-type` and others. */
  readonly code: string;
  readonly detail: string;
}

const maxFaults = 20;

/** Says which member breaks the schema, and which similar name it has. Never shows values. Throws a TypeError if `faults` is no list. */
export function explainPayload(body: Uint8Array, faults: readonly SchemaFault[]): Explanation {
  if (!Array.isArray(faults)) throw new TypeError("explainPayload: faults must be a list");
  const payload = parsed(body);
  const [first, ...others] = faults.slice(0, maxFaults).map((fault) => remedyOf(payload, fault));
  if (first === undefined) return verifies("The payload fits the schema.");
  return explanation(
    first,
    "payout-invalid",
    others.map(([, sentence]) => sentence),
  );
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    return undefined;
  }
}

function remedyOf(body: unknown, { pointer, code, detail }: SchemaFault): Remedy {
  const path = pointer
    .split("/")
    .slice(1, 20)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const name = path.at(-1);
  const place = pointer === "" ? "the body" : quoted(pointer);
  // Escaped although our own checks write it: anyone may call this.
  const due = quoted(detail).slice(1, -1);
  if (code === "wrong-type") {
    const kind = kindOf(valueAt(body, path));
    return ["payload-member-type", `Send ${place} otherwise: it ${due}, and is ${kind}.`];
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

function valueAt(body: unknown, path: readonly string[]): unknown {
  let value = body;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

/** Looks at the top and one level down. */
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
