import { createHmac, timingSafeEqual } from "node:crypto";
import { fieldLines, type HeaderLines } from "@countersign/core/internal";
import type { SignatureScheme } from "@countersign/webhook-hmac";
import { bodyVariants, type BodyVariant } from "./body-variants.ts";
import { quoted, type Remedy } from "./explanation.ts";
import { missesOf, type NearMiss, type Row } from "./near-miss.ts";
import { pace } from "./pace.ts";
import { remedy } from "./remedies.ts";
import { search } from "./search.ts";

export interface HmacContext {
  readonly request: HeaderLines;
  readonly body: Uint8Array;
  readonly secrets: readonly string[];
  readonly scheme: SignatureScheme;
  readonly time: string;
}

/** A sender: the number of its secret, what it takes as its key, and what it signs. */
interface HmacDraft {
  readonly number: number;
  readonly secret: string;
  readonly key: Buffer;
  readonly content: Buffer;
}

const maxHmacs = 2000;
const maxHashedBytes = 64_000_000;
const maxSecrets = 32;
const maxBodyBytes = 262_144;

/** Finds the secret, its reading and the content that fit the field; undefined if none does. */
export async function explainHmacForm(field: string, context: HmacContext): Promise<Remedy | undefined> {
  const { body, secrets, scheme } = context;
  const written = readingsOfField(field);
  if (written.length === 0) return undefined;
  const content = contentBy(scheme.signed ?? "{body}", body, context);
  const drafts = secrets.slice(0, maxSecrets).map((secret, index) => ({
    number: index + 1,
    secret,
    key: Buffer.from(bareOf(secret, scheme), scheme.secretEncoding ?? "utf8"),
    content,
  }));
  // One for each length of a MAC in the field.
  const hmacsEach = new Set(written.map(({ bytes: { length } }) => length)).size;
  let hashedBytes = 0;
  const fits = (draft: HmacDraft): boolean => {
    hashedBytes += draft.content.length * hmacsEach;
    return hashedBytes <= maxHashedBytes && writtenOf(draft, written) !== undefined;
  };
  const maxAttempts = Math.floor(maxHmacs / hmacsEach);
  const { found } = await search({ drafts, misses: hmacMisses(context), fits, maxAttempts, pace });
  const form = found === undefined ? undefined : writtenOf(found.draft, written);
  if (found === undefined || form === undefined) return undefined;
  // Another content says more than the reading of the secret.
  const miss = found.misses.find(({ part }) => part === "content") ?? found.misses[0];
  if (miss === undefined) return otherwiseWritten(form, found.draft, scheme);
  return [miss.what, miss.says.replace("{number}", String(found.draft.number))];
}

function hmacMisses(context: HmacContext): readonly NearMiss<HmacDraft>[] {
  const { body, scheme } = context;
  const { header, signed = "{body}" } = scheme;
  const bodies = bodyVariants(body, maxBodyBytes).map((variant): Row<BodyVariant> => [
    `hmac-of-${variant.what}`,
    variant.says,
    [variant],
    "usual",
  ]);
  return [
    ...missesOf<HmacDraft, Reading>(readingsOfSecret(scheme), {
      part: "key",
      says: (how) =>
        `Set secretEncoding, or the secret itself, to what the sender takes as its key: ${header} fits secret number {number} ${how}.`,
      put: (draft, read) => ({ ...draft, key: read(draft.secret) }),
    }),
    ...missesOf<HmacDraft, BodyVariant>(bodies, {
      part: "content",
      says: (how) =>
        `Compute ${header} over the bytes that are sent: it fits secret number {number} over ${how}.`,
      put: (draft, { bytes }) =>
        bytes().equals(body) ? draft : { ...draft, content: contentBy(signed, bytes(), context) },
    }),
    ...missesOf<HmacDraft, Buffer>(contentsOf(context), {
      part: "content",
      says: (how) =>
        `Agree on what is signed: ${header} fits secret number {number} over ${how}, and the scheme says ${quoted(signed)}.`,
      put: (draft, content) => ({ ...draft, content }),
    }),
  ];
}

function bareOf(secret: string, { secretPrefix = "" }: SignatureScheme): string {
  return secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret;
}

interface Written {
  readonly bytes: Buffer;
  readonly encoding: string;
  readonly prefix: string;
}

const maxField = 8192;
const maxEntries = 16;
const hex = /^[0-9a-f]{40,128}$/i;

function readingsOfField(field: string): readonly Written[] {
  if (field.length > maxField) return [];
  const entries = field.split(/[,\s]+/).slice(0, maxEntries);
  const written = entries.flatMap((entry) => {
    const prefix = /^(?:sha(?:1|256|512)[=:]|v\d[=,]|hmac[ -]?)/i.exec(entry)?.[0] ?? "";
    return [entry.slice(prefix.length), entry].flatMap((text) =>
      readingsOfText(text.replaceAll(/^["']|["']$/g, "")).map(([encoding, bytes]): Written => ({
        encoding,
        bytes,
        prefix,
      })),
    );
  });
  return written.filter(({ bytes: { length } }) => algorithms.has(length));
}

function readingsOfText(text: string): readonly (readonly [encoding: string, bytes: Buffer])[] {
  const inHex = hex.test(text) ? [["hex", Buffer.from(text, "hex")] as const] : [];
  if (!/^[A-Za-z0-9+/_-]{27,172}={0,2}$/.test(text)) return inHex;
  const bytes = Buffer.from(text, "base64");
  const padded = text.endsWith("=") ? "base64" : "base64 without padding";
  const inner = bytes.toString("latin1");
  return [
    ...inHex,
    [/[-_]/.test(text) ? "base64url" : padded, bytes],
    ["hex, and that in base64", Buffer.from(hex.test(inner) ? inner : "", "hex")],
  ];
}

// By the length of a MAC.
const algorithms: ReadonlyMap<number, string> = new Map([
  [32, "sha256"],
  [64, "sha512"],
  [20, "sha1"],
  [48, "sha384"],
]);

function writtenOf({ key, content }: HmacDraft, written: readonly Written[]): Written | undefined {
  const macs = new Map<number, Buffer>();
  return written.find(({ bytes: { length }, bytes }) => {
    const algorithm = algorithms.get(length);
    if (algorithm === undefined || key.length === 0) return false;
    const mac = macs.get(length) ?? createHmac(algorithm, key).update(content).digest();
    macs.set(length, mac);
    return timingSafeEqual(bytes, mac);
  });
}

type Reading = (secret: string) => Buffer;

const unprefixed = (secret: string): string => secret.replace(/^[a-z]+_/i, "");

function readingsOfSecret(scheme: SignatureScheme): readonly Row<Reading>[] {
  const bare = (secret: string): string => bareOf(secret, scheme);
  const trimmed: Reading = (secret) => Buffer.from(secret.trim(), scheme.secretEncoding ?? "utf8");
  const rows: readonly (readonly [what: string, how: string, read: Reading])[] = [
    ["hmac-secret-utf8", "as UTF-8 text", (secret) => Buffer.from(secret)],
    ["hmac-secret-base64", "decoded from base64", (secret) => Buffer.from(bare(secret), "base64")],
    ["hmac-secret-hex", "decoded from hex", (secret) => Buffer.from(bare(secret), "hex")],
    ["hmac-secret-trimmed", "without white space around it", trimmed],
    ["hmac-secret-line-feed", "with a line feed after it", (secret) => Buffer.from(`${secret}\n`)],
    ["hmac-secret-prefix", "without its prefix", (secret) => Buffer.from(unprefixed(secret))],
    [
      "hmac-secret-prefix",
      "without its prefix, decoded from base64",
      (secret) => Buffer.from(unprefixed(secret), "base64"),
    ],
  ];
  return rows.map(([what, how, read]) => [what, how, [read], "usual"]);
}

function contentBy(pattern: string, body: Uint8Array, { request, scheme, time }: HmacContext): Buffer {
  const id = scheme.id === undefined ? "" : (fieldLines(request, scheme.id.toLowerCase())[0]?.trim() ?? "");
  const text = pattern.replaceAll("{timestamp}", time).replaceAll("{id}", id);
  const [before = "", after = ""] = text.split("{body}");
  return Buffer.concat([Buffer.from(before), body, Buffer.from(after)]);
}

const patterns: readonly (readonly [pattern: string, says: string])[] = [
  ["{body}", "the body alone"],
  ["{timestamp}.{body}", "the time, a dot and the body"],
  ["{timestamp}{body}", "the time and the body"],
  ["v0:{timestamp}:{body}", "v0, the time and the body"],
  ["{id}.{timestamp}.{body}", "the identifier, the time and the body"],
  ["{body}{timestamp}", "the body and the time"],
  ["{body}.{timestamp}", "the body, a dot and the time"],
];

function contentsOf(context: HmacContext): readonly Row<Buffer>[] {
  return patterns.map(([pattern, says]) => {
    return ["hmac-of-other-content", says, [contentBy(pattern, context.body, context)], "usual"];
  });
}

const behind = (text: string): string => (text === "" ? "without a prefix" : `after ${quoted(text)}`);

/** The HMAC is right: its algorithm, its encoding or its prefix is not. */
function otherwiseWritten(
  { bytes, encoding, prefix: has }: Written,
  { number }: HmacDraft,
  scheme: SignatureScheme,
): Remedy {
  const { header, algorithm: wanted = "sha256", prefix = "", signatureEncodings = ["base64"] } = scheme;
  const algorithm = algorithms.get(bytes.length) ?? "";
  if (algorithm !== wanted) return remedy("hmac-algorithm", { header, number, wanted, algorithm });
  return signatureEncodings.some((each) => each === encoding)
    ? remedy("hmac-prefix", { header, due: behind(prefix), has: behind(has) })
    : remedy("hmac-encoding", { header, encodings: signatureEncodings.join(" or "), encoding });
}
