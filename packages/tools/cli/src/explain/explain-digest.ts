import { hash } from "node:crypto";
import { fieldLines, type HeaderLines } from "@countersign/core/internal";
import { verifyContentDigest } from "@countersign/content-digest";
import { bodyVariants } from "./body-variants.ts";
import { explanation, refusalOf, verifies, type Explanation, type Remedy } from "./explanation.ts";
import { pace } from "./pace.ts";
import { remedy } from "./remedies.ts";

/** Says why Content-Digest (RFC 9530) does not fit the body. An undefined `body` was not read: then only the field's form is checked. */
export function explainDigest(request: HeaderLines, body: Uint8Array | undefined): Promise<Explanation> {
  return pace.run(() => digestExplanation(request, body));
}

/** {@link explainDigest} without its turn: an explanation that already runs would wait for itself. */
export async function digestExplanation(
  { rawHeaders }: HeaderLines,
  body: Uint8Array | undefined,
): Promise<Explanation> {
  const code = verdictOn(rawHeaders, body ?? new Uint8Array());
  if (body === undefined && (code === undefined || code === "content-digest-mismatch")) {
    return explanation(remedy("body-not-known"), undefined);
  }
  if (code === undefined) return verifies("Content-Digest fits the body.");
  const field = fieldLines({ rawHeaders }, "content-digest").join(", ");
  const details = code === "content-digest-mismatch" && body !== undefined ? [digestOf(body)] : [];
  return explanation(await remedyOfField(field, code, { rawHeaders, body }), code, details);
}

function digestOf(body: Uint8Array): string {
  const bytes = body.length === 1 ? "The one byte" : `The ${body.length} bytes`;
  return `${bytes} at hand: sha-256=:${hash("sha256", body, "base64")}:`;
}

function verdictOn(rawHeaders: readonly string[], body: Uint8Array): string | undefined {
  return refusalOf(() => verifyContentDigest({ rawHeaders }, body));
}

interface DigestContext extends HeaderLines {
  readonly body: Uint8Array | undefined;
}

async function remedyOfField(field: string, code: string, context: DigestContext): Promise<Remedy> {
  if (code === "content-digest-missing") return missingField(context);
  if (code === "content-digest-mismatch") {
    const value = /=(:[^:,]*:)/.exec(wrongMember(field, context))?.[1] ?? "";
    return (await remedyOfValue(value, context)) ?? remedy("digest-unexplained");
  }
  const [name = "", ...rest] = field.split("=");
  const algorithm = name.trim();
  if (!/^sha-(?:256|512)$/.test(algorithm) && /^sha-?(?:256|512)$/i.test(algorithm))
    return remedy("digest-algorithm-spelling");
  if (code === "content-digest-unsupported") return remedy("digest-algorithm");
  if (rest.length === 0 || !/^[A-Za-z][A-Za-z0-9_-]*$/.test(algorithm))
    return remedy("digest-without-algorithm");
  return (await remedyOfValue(rest.join("=").trim(), context)) ?? remedy("digest-form");
}

function missingField(request: DigestContext): Remedy {
  const other = ["Digest", "Repr-Digest", "Content-MD5"].find(
    (name) => fieldLines(request, name.toLowerCase()).length > 0,
  );
  return other === undefined ? remedy("digest-missing") : remedy("digest-other-field", { other });
}

// Members that fit say nothing about the mistake.
function wrongMember(field: string, { body = new Uint8Array() }: DigestContext): string {
  const members = field.split(",").map((member) => member.trim());
  return members.find((member) => verdictOn(["content-digest", member], body) !== undefined) ?? field;
}

async function remedyOfValue(value: string, { body }: DigestContext): Promise<Remedy | undefined> {
  if (body === undefined) return undefined;
  const own = digestIn(value, body);
  if (own !== undefined) return remedyOfForm(own);
  for (const { what, says, bytes } of bodyVariants(body)) {
    // oxlint-disable-next-line no-await-in-loop -- a long body is hashed many times
    await pace.rest();
    const other = digestIn(value, bytes());
    if (other === undefined) continue;
    const written = other.form === "" ? "" : `; it is written ${other.form}`;
    const found = `it is the ${other.name} digest of ${says}${written}`;
    return [`digest-of-${what}`, `Compute Content-Digest over the bytes that are sent: ${found}.`];
  }
  return undefined;
}

function remedyOfForm({ name, form }: FoundDigest): Remedy {
  if (form === "") return remedy("digest-algorithm-name", { name });
  const advice = "Write the digest of Content-Digest in base64 between two colons, sha-256=:<base64>:";
  return [`digest-${/hex|base64url/.exec(form)?.[0] ?? "form"}`, `${advice}, since it is there ${form}.`];
}

interface FoundDigest {
  readonly name: string;
  /** Empty for base64 between colons. */
  readonly form: string;
}

const hashes = {
  sha256: "SHA-256",
  sha512: "SHA-512",
  sha1: "SHA-1",
  md5: "MD5",
  sha384: "SHA-384",
} as const;

function digestIn(value: string, bytes: Uint8Array): FoundDigest | undefined {
  for (const [algorithm, name] of Object.entries(hashes)) {
    const form = formOf(value, hash(algorithm, bytes, "buffer"));
    if (form !== undefined) return { name, form };
  }
  return undefined;
}

function formOf(value: string, digest: Buffer): string | undefined {
  const text = value.replaceAll(/^[:"']|[:"']$/g, "");
  const base64 = digest.toString("base64");
  const hex = digest.toString("hex");
  const isBetweenColons = value.startsWith(":") && value.endsWith(":");
  const forms: readonly (readonly [form: string, text: string])[] = [
    [isBetweenColons ? "" : "without the colons", base64],
    ["in hex", hex],
    ["in hex", hex.toUpperCase()],
    ["in hex, and that in base64", Buffer.from(hex).toString("base64")],
    ["in base64url without padding", digest.toString("base64url")],
    ["in base64url", base64.replaceAll("+", "-").replaceAll("/", "_")],
    ["without the padding", base64.replace(/=+$/, "")],
    ["in base64 twice", Buffer.from(base64).toString("base64")],
  ];
  return forms.find(([, written]) => written === text)?.[0];
}
