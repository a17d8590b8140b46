import { hash } from "node:crypto";
import { fieldLines, type HeaderLines } from "@countersign/core/door";
import { verifyContentDigest } from "@countersign/content-digest";
import { bodyVariants } from "./body-variants.ts";
import { explanation, refusalOf, verifies, type Explanation, type Remedy } from "./explanation.ts";
import { pace } from "./pace.ts";

/**
 * Says why Content-Digest (RFC 9530) does not fit the body, and what its sender has to change. An undefined `body` was not read: then
 * only the form of the field is checked.
 */
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
    return explanation(remedies.notKnown, "content-digest-mismatch");
  }
  if (code === undefined) return verifies("Content-Digest fits the body.");
  const field = fieldLines({ rawHeaders }, "content-digest").join(", ");
  return explanation(await remedyOfField(field, code, { rawHeaders, body }), code);
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
    return (await remedyOfValue(value, context)) ?? remedies.unexplained;
  }
  const [name = "", ...rest] = field.split("=");
  const algorithm = name.trim();
  if (!/^sha-(?:256|512)$/.test(algorithm) && /^sha-?(?:256|512)$/i.test(algorithm)) return remedies.spelling;
  if (code === "content-digest-unsupported") return remedies.algorithm;
  if (rest.length === 0 || !/^[A-Za-z][A-Za-z0-9_-]*$/.test(algorithm)) return remedies.withoutAlgorithm;
  return (await remedyOfValue(rest.join("=").trim(), context)) ?? remedies.form;
}

const remedies = {
  notKnown: [
    "body-not-known",
    "Compare Content-Digest with the bytes that are sent: the body was not read, so it is not known whether they fit.",
  ],
  unexplained: [
    "digest-unexplained",
    "Compute Content-Digest over the bytes that are sent: it fits neither the body nor any usual form of it, so the body was changed on its way, or the digest is that of another one.",
  ],
  spelling: [
    "digest-algorithm-spelling",
    "Write the algorithm of Content-Digest as sha-256 or sha-512, in lower case and with its hyphen.",
  ],
  algorithm: [
    "digest-algorithm",
    "Send a Content-Digest by sha-256 or sha-512: no other algorithm is taken.",
  ],
  withoutAlgorithm: [
    "digest-without-algorithm",
    "Write Content-Digest as sha-256=:<base64>:, the name of the algorithm first.",
  ],
  form: [
    "digest-form",
    "Write Content-Digest as sha-256=:<base64>:, the digest in base64 with its padding between two colons.",
  ],
  missing: ["digest-missing", "Send Content-Digest: sha-256=:<base64>: with the digest of the body."],
} as const;

function missingField(request: DigestContext): Remedy {
  const other = ["Digest", "Repr-Digest", "Content-MD5"].find(
    (name) => fieldLines(request, name.toLowerCase()).length > 0,
  );
  if (other === undefined) return remedies.missing;
  const advice = "Send the digest in the field Content-Digest, as sha-256=:<base64>:";
  return ["digest-other-field", `${advice}, not in ${other}.`];
}

// Members that fit say nothing about the mistake.
function wrongMember(field: string, { body = new Uint8Array() }: DigestContext): string {
  const members = field.split(",").map((member) => member.trim());
  return members.find((member) => verdictOn(["content-digest", member], body) !== undefined) ?? field;
}

/** Finds the body, the algorithm and the form whose digest the value is. */
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
  if (form === "") {
    const advice = "Name the algorithm of Content-Digest that was used";
    return ["digest-algorithm-name", `${advice}: the digest is one by ${name}.`];
  }
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
