import { createHmac, timingSafeEqual } from "node:crypto";
import {
  fieldLines,
  isGuardError,
  option,
  optionError,
  splitOptions,
  type HeaderLines,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core";
import {
  signatureSchemes,
  verifyPayload,
  type SecretEncoding,
  type SignatureScheme,
  type VerifyPayloadOptions,
} from "@countersign/webhook-hmac";
import { bodyVariants } from "./body-variants.ts";
import { explanation, quoted, type Explanation } from "./explanation.ts";

/** What the HMAC of a webhook is explained by: the secrets, and the options of `verifyPayload`. */
export interface ExplainHmacOptions extends VerifyPayloadOptions {
  /** Each of them is tried; the explanation names them by their position, from 1. */
  readonly secrets: readonly string[];
  /** Take the time of the signature, where the scheme has one, for now: for a capture, which is always late. Default false. */
  readonly atItsTime?: boolean | undefined;
}

/** The rules of the options that verifyPayload has not; the secrets it reads itself. */
export const hmacTable: OptionTable<
  Pick<ExplainHmacOptions, "atItsTime" | "secrets">,
  { readonly atItsTime: boolean; readonly secrets: ExplainHmacOptions["secrets"] }
> = {
  secrets: option.own(readSecrets),
  atItsTime: option.boolean(false),
};

function readSecrets(secrets: unknown, owner: OptionOwner, name: string): readonly string[] {
  if (Array.isArray(secrets) && secrets.every((secret) => typeof secret === "string")) return [...secrets];
  throw optionError(owner, name, "a list of secrets", secrets);
}

/**
 * Says why the HMAC of a webhook does not fit its body, and what has to change. It names the secret that fits by its position alone: no
 * explanation holds a secret, an HMAC that was computed, or the received one. At most 32 secrets are tried, 2,000 HMACs and 64 MB. Throws a TypeError on a bad
 * option; whatever the request is, it gets an explanation.
 */
export function explainHmac(
  request: HeaderLines,
  body: Uint8Array,
  options: ExplainHmacOptions,
): Explanation {
  const [{ secrets, atItsTime }, given] = splitOptions("explainHmac", hmacTable, options);
  const { timestamp } = schemeOf(given);
  const text = timestamp === undefined ? "" : timeOf(request, schemeOf(given));
  const read = atItsTime && /^\d{1,12}$/.test(text) ? { ...given, clock: () => Number(text) * 1000 } : given;
  const header = schemeOf(read).header;
  try {
    verifyPayload(body, headersOf(request), secrets, read);
    return explanation("verifies", undefined, `${header} is the HMAC of the body.`);
  } catch (error) {
    if (!isGuardError(error)) throw error;
    return explainRefusal({ request, body, secrets, options: read, header, code: error.code });
  }
}

/** The time in the fields of a scheme, as text. */
function timeOf(request: HeaderLines, { timestamp, header }: SignatureScheme): string {
  const field = (name: string): string => fieldLines(request, name.toLowerCase())[0]?.trim() ?? "";
  return timestamp !== undefined && "header" in timestamp
    ? field(timestamp.header)
    : (/t=(\d+)/.exec(field(header).slice(0, maxField))?.[1] ?? "");
}

interface HmacContext {
  readonly request: HeaderLines;
  readonly body: Uint8Array;
  readonly secrets: readonly string[];
  readonly options: VerifyPayloadOptions;
  /** The name of the field. */
  readonly header: string;
  readonly code: string;
}

function schemeOf({ scheme = { header: "X-Payload-Signature" } }: VerifyPayloadOptions): SignatureScheme {
  return typeof scheme === "string" ? signatureSchemes[scheme] : scheme;
}

function headersOf({ rawHeaders }: HeaderLines): Record<string, string | string[]> {
  const headers = new Map<string, string[]>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), rawHeaders[index + 1] ?? ""]);
  }
  return Object.fromEntries(
    [...headers].map(([name, lines]) => [name, lines.length === 1 ? lines[0]! : lines]),
  );
}

function explainRefusal(context: HmacContext): Explanation {
  const { request, code, header } = context;
  const lines = fieldLines(request, header.toLowerCase());
  switch (code) {
    case "payload-signature-missing":
      return explainMissing(context);
    case "payload-signature-malformed":
      return lines.length > 1
        ? explanation("hmac-repeated", code, `Send one ${header}: the request has ${lines.length} of them.`)
        : (explainForm(lines[0] ?? "", context) ?? malformed(context));
    case "payload-signature-wrong":
      return explainForm(lines[0] ?? "", context) ?? wrong(context);
    default:
      return explainTime(context);
  }
}

function explainMissing({ request, header, code }: HmacContext): Explanation {
  for (const [name, { header: other }] of Object.entries(signatureSchemes)) {
    if (fieldLines(request, other.toLowerCase()).length > 0 && other !== header) {
      const sentence = `Set scheme to ${quoted(name)}, or let the sender sign in ${header}: the request has ${other} instead.`;
      return explanation("hmac-other-scheme", code, sentence);
    }
  }
  const like = request.rawHeaders.find(
    (name, index) => index % 2 === 0 && plain(name).endsWith("signature") && plain(name) !== plain(header),
  );
  return like === undefined
    ? explanation("hmac-missing", code, `Send ${header} with the HMAC of the body: the request has none.`)
    : explanation(
        "hmac-field-name",
        code,
        `Set header to the field that the sender uses, or let it send ${header}: the request has ${quoted(like)}.`,
      );
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, "");
}

function explainTime({ code, options, request }: HmacContext): Explanation {
  const { timestamp } = schemeOf(options);
  const field =
    timestamp !== undefined && "header" in timestamp ? timestamp.header : "the time of the signature";
  const text = field.startsWith("the") ? "" : (fieldLines(request, field.toLowerCase())[0] ?? "");
  const sentences: Readonly<Record<string, readonly [string, string]>> = {
    "payload-timestamp-missing": [
      "hmac-time-missing",
      `Send ${field}, whole seconds since 1970: the request has none.`,
    ],
    "payload-timestamp-malformed": [
      /^\d{13}$/.test(text) ? "hmac-time-milliseconds" : "hmac-time-form",
      `Send ${field} as whole seconds since 1970${/^\d{13}$/.test(text) ? ", not as milliseconds" : ""}.`,
    ],
    "payload-timestamp-expired": [
      "hmac-expired",
      `Sign each delivery anew, and compare the clocks: ${field} is older than toleranceSeconds allow.`,
    ],
    "payload-timestamp-future": [
      "hmac-in-future",
      `Compare the clocks: ${field} lies ahead of the receiver's clock.`,
    ],
    "payload-id-missing": [
      "hmac-id-missing",
      "Send the identifier of the message in its field: it is signed.",
    ],
    "payload-id-malformed": [
      "hmac-id-form",
      "Send one identifier of the message of visible ASCII, without dots.",
    ],
  };
  const [what, sentence] = (Object.hasOwn(sentences, code) ? sentences[code] : undefined) ?? [
    code,
    `Look up the refusal ${quoted(code)}.`,
  ];
  return explanation(what, code, sentence);
}

function malformed({ code, header, options }: HmacContext): Explanation {
  const { prefix = "", signatureEncodings = ["base64"], algorithm = "sha256" } = schemeOf(options);
  const behind = prefix === "" ? "" : ` behind ${quoted(prefix)}`;
  return explanation(
    "hmac-form",
    code,
    `Write ${header} as an HMAC by ${algorithm} in ${signatureEncodings.join(" or ")}${behind}.`,
  );
}

function wrong({ code, secrets, header }: HmacContext): Explanation {
  const count = secrets.length === 1 ? "the secret" : `any of the ${secrets.length} secrets`;
  return explanation(
    "hmac-wrong-secret",
    code,
    `Compare the secrets of both sides: ${header} does not fit ${count} in any usual reading, nor the body in any usual form, so the sender has another secret or another body.`,
  );
}

const algorithms = [
  ["sha256", 32],
  ["sha512", 64],
  ["sha1", 20],
  ["sha384", 48],
] as const;

/** How the field may be meant: its bytes, and how it is written. */
interface Written {
  readonly bytes: Buffer;
  readonly encoding: string;
  readonly prefix: string;
}

interface Reading {
  readonly says: string;
  readonly encoding: SecretEncoding | "trimmed" | "prefix" | "line-feed";
  readonly key: Buffer;
}

/** What is signed, and by which reading of which secret: the first that fits. */
function explainForm(field: string, context: HmacContext): Explanation | undefined {
  const written = readingsOfField(field);
  let [hmacs, bytes] = [0, 0];
  for (const { index, reading, content } of readingsOf(context)) {
    for (const [algorithm, length] of algorithms) {
      const candidates = written.filter((each) => each.bytes.length === length);
      if (candidates.length === 0) continue;
      hmacs += 1;
      bytes += content.bytes.length;
      if (hmacs > maxHmacs || bytes > maxHashedBytes) return undefined;
      const mac = createHmac(algorithm, reading.key).update(content.bytes).digest();
      const found = candidates.find((each) => timingSafeEqual(each.bytes, mac));
      if (found !== undefined) return explainFound({ index, reading, content, algorithm, found }, context);
    }
  }
  return undefined;
}

interface Attempt {
  readonly index: number;
  readonly reading: Reading;
  readonly content: Content;
}

/** One thing otherwise first: the content by each reading of each secret, then other contents as the scheme reads the secrets. */
function* readingsOf(context: HmacContext): Generator<Attempt> {
  const scheme = schemeOf(context.options);
  const [right, ...others] = contentsOf(context);
  const readings = context.secrets
    .slice(0, maxSecrets)
    .flatMap((secret, index) =>
      readingsOfSecret(secret, scheme).map((reading) => ({ index, reading, isUsual: reading.says === "" })),
    );
  if (right !== undefined) for (const each of readings) yield { ...each, content: right };
  for (const usual of [true, false]) {
    for (const content of others) {
      for (const each of readings) if (each.isUsual === usual) yield { ...each, content };
    }
  }
}

const maxHmacs = 2000;
const maxHashedBytes = 64_000_000;
const maxSecrets = 32;
const maxBodyBytes = 262_144;
const maxField = 8192;

function readingsOfField(field: string): readonly Written[] {
  const written: Written[] = [];
  if (field.length > maxField) return written;
  for (const entry of field.split(/[,\s]+/).slice(0, 16)) {
    const prefix = /^(?:sha(?:1|256|512)[=:]|v\d[=,]|hmac[ -]?)/i.exec(entry)?.[0] ?? "";
    for (const text of new Set([entry.slice(prefix.length), entry])) {
      const bare = text.replaceAll(/^["']|["']$/g, "");
      if (/^[0-9a-f]{40,128}$/i.test(bare))
        written.push({ bytes: Buffer.from(bare, "hex"), encoding: "hex", prefix });
      if (/^[A-Za-z0-9+/_-]{27,172}={0,2}$/.test(bare)) {
        const bytes = Buffer.from(bare, "base64");
        const isUrl = /[-_]/.test(bare);
        written.push({
          bytes,
          encoding: isUrl ? "base64url" : bare.endsWith("=") ? "base64" : "base64 without padding",
          prefix,
        });
        const inner = bytes.toString("latin1");
        if (/^[0-9a-f]{40,128}$/i.test(inner)) {
          written.push({ bytes: Buffer.from(inner, "hex"), encoding: "hex, and that in base64", prefix });
        }
      }
    }
  }
  return written;
}

function readingsOfSecret(
  secret: string,
  { secretEncoding = "utf8", secretPrefix = "" }: SignatureScheme,
): readonly Reading[] {
  const bare = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret;
  const behind = /^[a-z]+_/i.exec(secret)?.[0] ?? "";
  const readings: readonly Reading[] = [
    { says: "", encoding: secretEncoding, key: Buffer.from(bare, secretEncoding) },
    { says: "as UTF-8 text", encoding: "utf8", key: Buffer.from(secret, "utf8") },
    { says: "decoded from base64", encoding: "base64", key: Buffer.from(bare, "base64") },
    { says: "decoded from hex", encoding: "hex", key: Buffer.from(bare, "hex") },
    {
      says: "without white space around it",
      encoding: "trimmed",
      key: Buffer.from(secret.trim(), secretEncoding),
    },
    { says: "with a line feed behind it", encoding: "line-feed", key: Buffer.from(`${secret}\n`, "utf8") },
    { says: "without its prefix", encoding: "prefix", key: Buffer.from(secret.slice(behind.length), "utf8") },
    {
      says: "without its prefix, decoded from base64",
      encoding: "prefix",
      key: Buffer.from(secret.slice(behind.length), "base64"),
    },
  ];
  return readings.filter(({ key }) => key.length > 0);
}

interface Content {
  readonly what: string;
  readonly says: string;
  readonly bytes: Buffer;
}

/** What may have been signed: the body as the scheme has it, then otherwise. */
function contentsOf({ request, body, options }: HmacContext): readonly Content[] {
  const bytes = Buffer.from(body);
  const { id, signed = "{body}" } = schemeOf(options);
  const field = (name: string): string => fieldLines(request, name.toLowerCase())[0]?.trim() ?? "";
  const times = timeOf(request, schemeOf(options));
  const around = (pattern: string, content: Buffer): Buffer => {
    const text = pattern
      .replaceAll("{timestamp}", times)
      .replaceAll("{id}", id === undefined ? "" : field(id));
    const [before = "", after = ""] = text.split("{body}");
    return Buffer.concat([Buffer.from(before), content, Buffer.from(after)]);
  };
  const others: readonly (readonly [string, string])[] = [
    ["{body}", "the body alone"],
    ["{timestamp}.{body}", "the time, a dot and the body"],
    ["{timestamp}{body}", "the time and the body"],
    ["v0:{timestamp}:{body}", "v0, the time and the body"],
    ["{id}.{timestamp}.{body}", "the identifier, the time and the body"],
    ["{body}{timestamp}", "the body and the time"],
    ["{body}.{timestamp}", "the body, a dot and the time"],
  ];
  return [
    { what: "", says: "", bytes: around(signed, bytes) },
    ...bodyVariants(body, maxBodyBytes).map(({ what, says, bytes: content }) => ({
      what,
      says,
      bytes: around(signed, content),
    })),
    ...others.map(([pattern, says]) => ({ what: "content", says, bytes: around(pattern, bytes) })),
  ];
}

interface FoundHmac {
  readonly index: number;
  readonly reading: Reading;
  readonly content: Content;
  readonly algorithm: string;
  readonly found: Written;
}

/** Names what is otherwise than the options say, the most telling first. */
function explainFound(
  { index, reading, content, algorithm, found }: FoundHmac,
  { code, header, options }: HmacContext,
): Explanation {
  const scheme = schemeOf(options);
  const secret = `secret number ${index + 1}`;
  const { algorithm: wanted = "sha256", prefix = "", signatureEncodings = ["base64"] } = scheme;
  if (content.what === "content") {
    const sentence = `Agree on what is signed: ${header} fits ${secret} over ${content.says}, and the scheme says ${quoted(scheme.signed ?? "{body}")}.`;
    return explanation("hmac-of-other-content", code, sentence);
  }
  if (content.what !== "") {
    const sentence = `Compute ${header} over the bytes that are sent: it fits ${secret} over ${content.says}.`;
    return explanation(`hmac-of-${content.what}`, code, sentence);
  }
  if (reading.says !== "") {
    const sentence = `Set secretEncoding, or the secret itself, to what the sender takes as its key: ${header} fits ${secret} ${reading.says}.`;
    return explanation(`hmac-secret-${reading.encoding}`, code, sentence);
  }
  if (algorithm !== wanted) {
    const sentence = `Set algorithm, or let the sender use ${wanted}: ${header} fits ${secret} by ${algorithm}.`;
    return explanation("hmac-algorithm", code, sentence);
  }
  if (!signatureEncodings.some((encoding) => encoding === found.encoding)) {
    const sentence = `Write ${header} in ${signatureEncodings.join(" or ")}, or set signatureEncodings: it is in ${found.encoding}.`;
    return explanation("hmac-encoding", code, sentence);
  }
  const has = found.prefix === "" ? "without a prefix" : `behind ${quoted(found.prefix)}`;
  const sentence = `Write ${header} ${prefix === "" ? "without a prefix" : `behind ${quoted(prefix)}`}, or set prefix: the signature stands there ${has}.`;
  return explanation("hmac-prefix", code, sentence);
}
