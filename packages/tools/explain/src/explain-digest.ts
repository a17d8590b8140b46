import { hash } from "node:crypto";
import { fieldLines, type HeaderLines } from "@countersign/core/door";
import { verifyContentDigest } from "@countersign/content-digest";
import { bodyVariants, type BodyVariant } from "./body-variants.ts";
import { explanation, refusalOf, type Explanation, type Remedy } from "./explanation.ts";
import { missesOf, type Row } from "./near-miss.ts";
import { pace } from "./pace.ts";
import { search } from "./search.ts";

/**
 * Says why the Content-Digest field (RFC 9530) of a request does not fit its body, and what its sender has to change. `body` are the
 * bytes as received; undefined where nobody has read them, and then only the form of the field is looked at.
 */
export function explainDigest(request: HeaderLines, body: Uint8Array | undefined): Promise<Explanation> {
  return pace.run(() => digestExplanation(request, body));
}

/** For the explanation of a signature, which is under way already and would wait for itself. */
export async function digestExplanation(
  { rawHeaders }: HeaderLines,
  body: Uint8Array | undefined,
): Promise<Explanation> {
  const verdict = verdictOn(rawHeaders, body ?? new Uint8Array());
  if (body === undefined && (verdict === undefined || verdict === "content-digest-mismatch")) {
    const sentence =
      "Compare Content-Digest with the bytes that are sent: the body was not read, so it is not known whether they fit.";
    return explanation("body-not-known", "content-digest-mismatch", sentence);
  }
  if (verdict === undefined) return explanation("verifies", undefined, "Content-Digest fits the body.");
  const field = fieldLines({ rawHeaders }, "content-digest").join(", ");
  const [what, sentence] = await remedyOfField(field, verdict, { rawHeaders, body });
  return explanation(what, verdict, sentence);
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
    return (await remedyOfValue(value, context)) ?? unexplained;
  }
  const [name = "", ...rest] = field.split("=");
  const algorithm = name.trim();
  if (!/^sha-(?:256|512)$/.test(algorithm) && /^sha-?(?:256|512)$/i.test(algorithm)) return spelling;
  if (code === "content-digest-unsupported") return otherAlgorithm;
  if (rest.length === 0 || !/^[A-Za-z][A-Za-z0-9_-]*$/.test(algorithm)) return withoutAlgorithm;
  return (await remedyOfValue(rest.join("=").trim(), context)) ?? otherForm;
}

const unexplained: Remedy = [
  "digest-unexplained",
  "Compute Content-Digest over the bytes that are sent: it fits neither the body nor any usual form of it, so the body was changed on its way, or the digest is that of another one.",
];
const spelling: Remedy = [
  "digest-algorithm-spelling",
  "Write the algorithm of Content-Digest as sha-256 or sha-512, in lower case and with its hyphen.",
];
const otherAlgorithm: Remedy = [
  "digest-algorithm",
  "Send a Content-Digest by sha-256 or sha-512: no other algorithm is taken.",
];
const withoutAlgorithm: Remedy = [
  "digest-without-algorithm",
  "Write Content-Digest as sha-256=:<base64>:, the name of the algorithm first.",
];
const otherForm: Remedy = [
  "digest-form",
  "Write Content-Digest as sha-256=:<base64>:, the digest in base64 with its padding between two colons.",
];

function missingField(request: DigestContext): Remedy {
  const other = ["Digest", "Repr-Digest", "Content-MD5"].find(
    (name) => fieldLines(request, name.toLowerCase()).length > 0,
  );
  return other === undefined
    ? ["digest-missing", "Send Content-Digest: sha-256=:<base64>: with the digest of the body."]
    : [
        "digest-other-field",
        `Send the digest in the field Content-Digest, as sha-256=:<base64>:, not in ${other}.`,
      ];
}

// The others fit: what they are the digest of says nothing.
function wrongMember(field: string, { body = new Uint8Array() }: DigestContext): string {
  const members = field.split(",").map((member) => member.trim());
  return members.find((member) => verdictOn(["content-digest", member], body) !== undefined) ?? field;
}

const hashes = [
  ["sha256", "SHA-256"],
  ["sha512", "SHA-512"],
  ["sha1", "SHA-1"],
  ["md5", "MD5"],
  ["sha384", "SHA-384"],
] as const;

/** What the value is: the digest of these bytes written otherwise, by another algorithm, or of other bytes. */
async function remedyOfValue(value: string, { body }: DigestContext): Promise<Remedy | undefined> {
  if (body === undefined) return undefined;
  const right = Buffer.from(body);
  const rows = bodyVariants(body).map((variant): Row<BodyVariant> => {
    return [`digest-of-${variant.what}`, variant.says, [variant]];
  });
  const misses = missesOf<Buffer, BodyVariant>(rows, {
    part: "body",
    says: (how) => how,
    put: (_body, { bytes }) => (bytes().equals(right) ? right : bytes()),
  });
  const fits = (bytes: Buffer): boolean => digestIn(value, bytes) !== undefined;
  const { found } = await search({ drafts: [right], misses, fits, pace });
  const digest = found === undefined ? undefined : digestIn(value, found.draft);
  if (found === undefined || digest === undefined) return undefined;
  const [name, form] = digest;
  const [other] = found.misses;
  if (other !== undefined) {
    const written = form === "" ? "" : `; it is written ${form}`;
    return [
      other.what,
      `Compute Content-Digest over the bytes that are sent: it is the ${name} digest of ${other.says}${written}.`,
    ];
  }
  if (form === "") {
    return [
      "digest-algorithm-name",
      `Name the algorithm of Content-Digest that was used: the digest is one by ${name}.`,
    ];
  }
  return [
    `digest-${/hex|base64url/.exec(form)?.[0] ?? "form"}`,
    `Write the digest of Content-Digest in base64 between two colons, sha-256=:<base64>:, since it is there ${form}.`,
  ];
}

/** The algorithm by which a value is the digest of these bytes, and how it is written; undefined when it is none. */
function digestIn(value: string, bytes: Buffer): readonly [name: string, form: string] | undefined {
  for (const [algorithm, name] of hashes) {
    const form = formOf(value, Buffer.from(hash(algorithm, bytes, "hex"), "hex"));
    if (form !== undefined) return [name, form];
  }
  return undefined;
}

/** How a digest stands in a text; empty when it is base64 between colons, undefined when it does not. */
function formOf(value: string, digest: Buffer): string | undefined {
  const text = value.replaceAll(/^[:"']|[:"']$/g, "");
  const base64 = digest.toString("base64");
  const hex = digest.toString("hex");
  const isBetweenColons = value.startsWith(":") && value.endsWith(":");
  if (text === base64) return isBetweenColons ? "" : "without the colons";
  const forms: readonly (readonly [form: string, text: string])[] = [
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
