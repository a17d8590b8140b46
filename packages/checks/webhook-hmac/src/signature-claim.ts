import { GuardError } from "@countersign/core";
import type { PayloadSignatureCode } from "./codes.ts";
import { parseSignature } from "./payload-signature.ts";
import type { FieldName, ResolvedScheme, TimestampPlace } from "./scheme.ts";
import { signatureSchemes } from "./signature-schemes.ts";

/** What the header fields of a message say about its signature; nothing of it is verified. */
export interface SignatureClaim {
  /** In base64, each in the form that the scheme asks for. */
  readonly signatures: readonly string[];
  /** In seconds since 1970, with the digits as they were sent. */
  readonly timestamp: { readonly text: string; readonly seconds: number } | undefined;
  readonly id: string | undefined;
}

/** The values of every line of a field, by its name in lower case. */
export type Lines = (name: string) => readonly string[];

// A sender has a few secrets during a rotation. Each entry more is work that nobody has authorised.
const maxEntries = 16;
const maxLength = 8192;
// Twelve digits reach the year 33658; thirteen are milliseconds.
const wholeSeconds = /^(?:0|[1-9]\d{0,11})$/;
const fieldText = /^[\t -~]*$/;
const entryText = /^[!-~]+$/;
const visible = /^[!-~]{1,256}$/;

/** Reads the fields of a scheme. Throws a GuardError with `status` for anything that is not exactly of it. */
export function readClaim(lines: Lines, scheme: ResolvedScheme, status: number): SignatureClaim {
  const refuse: Refuse = (code, message) => new GuardError<PayloadSignatureCode>({ status, code, message });
  const { header, separator, timestamp } = scheme;
  const field = only(lines, header);
  if (field === undefined) {
    const message = `the request has no ${header.written} field${otherScheme(lines)}`;
    throw refuse("payload-signature-missing", message);
  }
  const entries = entriesOf(field, separator);
  const signatures = entries && signaturesOf(entries, scheme);
  if (entries === undefined || signatures === undefined) {
    throw refuse("payload-signature-malformed", `${header.written} is not ${expectationOf(scheme)}`);
  }
  return {
    signatures,
    timestamp:
      timestamp === undefined ? undefined : readTimestamp(timestampText(timestamp, entries, lines), refuse),
    id: scheme.id === undefined ? undefined : readId(lines, scheme.id, { scheme, refuse }),
  };
}

/** For who forgot the option `scheme`: the field of a sender that is known. */
function otherScheme(lines: Lines): string {
  const found = Object.entries(signatureSchemes).find(
    ([, { header }]) => lines(header.toLowerCase()).length > 0,
  );
  if (found === undefined) return "";
  const [name, { header }] = found;
  return `, and has ${header}: did you mean scheme: ${JSON.stringify(name)}?`;
}

type Refuse = (code: PayloadSignatureCode, message: string) => GuardError<PayloadSignatureCode>;

/** The value of a field; `""`, which nothing takes, where there is more than one line. */
function only(lines: Lines, { lower }: FieldName): string | undefined {
  const values = lines(lower);
  return values.length > 1 ? "" : values[0];
}

function entriesOf(field: string, separator: ResolvedScheme["separator"]): readonly string[] | undefined {
  if (field.length > maxLength || !fieldText.test(field)) return undefined;
  // Of these characters trim() takes spaces and tabs alone. An expression that ends in spaces takes quadratic time inside the value.
  const value = field.trim();
  const entries = separator === undefined ? [value] : value.split(separator, maxEntries + 1);
  // White space in an entry shows that a framework has joined two lines of the field.
  return entries.length <= maxEntries && entries.every((entry) => entryText.test(entry))
    ? entries
    : undefined;
}

/** Undefined where there is none, or where one of the scheme's own is malformed. */
function signaturesOf(
  entries: readonly string[],
  { prefix, separator, algorithm, signatureEncodings }: ResolvedScheme,
): readonly string[] | undefined {
  const signatures: string[] = [];
  for (const entry of entries) {
    if (!entry.startsWith(prefix)) {
      if (separator === undefined) return undefined;
      continue;
    }
    const signature = parseSignature(entry.slice(prefix.length), signatureEncodings, algorithm);
    if (signature === undefined) return undefined;
    signatures.push(signature);
  }
  return signatures.length === 0 ? undefined : signatures;
}

function expectationOf({ algorithm, signatureEncodings, prefix, separator }: ResolvedScheme): string {
  const one = `an HMAC-${algorithm === "sha256" ? "SHA-256" : "SHA-512"} in ${signatureEncodings.join(" or ")}`;
  const behind = prefix === "" ? "" : ` behind ${JSON.stringify(prefix)}`;
  return separator === undefined
    ? `exactly one line with ${one}${behind}`
    : `one line of up to ${maxEntries} entries with ${one}${behind} among them`;
}

function timestampText(place: TimestampPlace, entries: readonly string[], lines: Lines): string | undefined {
  if ("header" in place) return only(lines, place.header);
  const [entry, ...others] = entries.filter((candidate) => candidate.startsWith(place.prefix));
  return entry === undefined ? undefined : others.length === 0 ? entry.slice(place.prefix.length) : "";
}

function readTimestamp(text: string | undefined, refuse: Refuse): SignatureClaim["timestamp"] {
  if (text === undefined) {
    throw refuse("payload-timestamp-missing", "the request does not say when it was signed");
  }
  if (!wholeSeconds.test(text)) {
    throw refuse(
      "payload-timestamp-malformed",
      "the time of the signature is not exactly one number of whole seconds",
    );
  }
  return { text, seconds: Number(text) };
}

function readId(
  lines: Lines,
  field: FieldName,
  { scheme: { signed }, refuse }: { readonly scheme: ResolvedScheme; readonly refuse: Refuse },
): string {
  const id = only(lines, field);
  if (id === undefined) {
    throw refuse("payload-id-missing", `the request has no ${field.written} field`);
  }
  // The text beside it in what is signed must not be found in it: two messages would have one signature.
  const parts = [...signed.before, "{body}", ...signed.after];
  const at = parts.indexOf("{id}");
  const beside = [parts[at - 1], parts[at + 1]];
  if (!visible.test(id) || beside.some((text) => text !== undefined && id.includes(text))) {
    throw refuse("payload-id-malformed", `${field.written} is not exactly one identifier`);
  }
  return id;
}

/** Throws a GuardError with `status` for a signature that was made more than `toleranceSeconds` before or after now. */
export function assertFresh(
  { timestamp }: SignatureClaim,
  {
    toleranceSeconds,
    clock,
    status,
  }: { readonly toleranceSeconds: number; readonly clock: () => number; readonly status: number },
): void {
  if (timestamp === undefined) return;
  const age = Math.floor(clock() / 1000) - timestamp.seconds;
  if (Math.abs(age) <= toleranceSeconds) return;
  const [code, direction] = age > 0 ? (["expired", "old"] as const) : (["future", "early"] as const);
  throw new GuardError<PayloadSignatureCode>({
    status,
    code: `payload-timestamp-${code}`,
    message: `the signature is ${Math.abs(age)} s ${direction}, over ${toleranceSeconds}`,
  });
}
