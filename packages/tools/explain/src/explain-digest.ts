import { hash } from "node:crypto";
import { fieldLines, isGuardError, type HeaderLines } from "@countersign/core";
import { verifyContentDigest } from "@countersign/content-digest";
import { bodyVariants } from "./body-variants.ts";
import { explanation, type Explanation } from "./explanation.ts";

/**
 * Says why the Content-Digest field (RFC 9530) of a request does not fit its body, and what its sender has to change. `body` are the
 * bytes as received; undefined where nobody has read them, and then only the form of the field is looked at.
 */
export function explainDigest(request: HeaderLines, body: Uint8Array | undefined): Explanation {
  const { rawHeaders } = request;
  try {
    verifyContentDigest({ rawHeaders }, body ?? new Uint8Array());
    if (body === undefined) return explainUnread();
    return explanation("verifies", undefined, "Content-Digest fits the body.");
  } catch (error) {
    if (!isGuardError(error)) throw error;
    if (body === undefined && error.code === "content-digest-mismatch") return explainUnread();
    return explainRefusal(fieldLines(request, "content-digest").join(", "), error.code, { rawHeaders, body });
  }
}

interface DigestContext extends HeaderLines {
  readonly body: Uint8Array | undefined;
}

function explainUnread(): Explanation {
  return explanation(
    "body-not-known",
    "content-digest-mismatch",
    "Compare Content-Digest with the bytes that are sent: the body was not read, so it is not known whether they fit.",
  );
}

function explainRefusal(field: string, code: string, context: DigestContext): Explanation {
  switch (code) {
    case "content-digest-missing":
      return explainMissing(context);
    case "content-digest-mismatch":
      return explainValue(valueOf(wrongMember(field, context)), code, context) ?? explainOther(code);
    default:
      return explainForm(field, code, context);
  }
}

function explainMissing({ rawHeaders }: DigestContext): Explanation {
  const code = "content-digest-missing";
  const old = fieldLines({ rawHeaders }, "digest").length > 0 ? "Digest" : undefined;
  const md5 = fieldLines({ rawHeaders }, "content-md5").length > 0 ? "Content-MD5" : undefined;
  const repr = fieldLines({ rawHeaders }, "repr-digest").length > 0 ? "Repr-Digest" : undefined;
  const other = old ?? repr ?? md5;
  return other === undefined
    ? explanation(
        "digest-missing",
        code,
        "Send Content-Digest: sha-256=:<base64>: with the digest of the body.",
      )
    : explanation(
        "digest-other-field",
        code,
        `Send the digest in the field Content-Digest, as sha-256=:<base64>:, not in ${other}.`,
      );
}

function explainForm(field: string, code: string, context: DigestContext): Explanation {
  const [name = "", ...rest] = field.split("=");
  const value = rest.join("=").trim();
  const algorithm = name.trim();
  const isKnown = algorithm === "sha-256" || algorithm === "sha-512";
  if (!isKnown && /^sha-?(?:256|512)$/i.test(algorithm)) {
    return explanation(
      "digest-algorithm-spelling",
      code,
      `Write the algorithm of Content-Digest as sha-256 or sha-512, in lower case and with its hyphen.`,
    );
  }
  if (code === "content-digest-unsupported") {
    return explanation(
      "digest-algorithm",
      code,
      "Send a Content-Digest by sha-256 or sha-512: no other algorithm is taken.",
    );
  }
  if (rest.length === 0 || !/^[A-Za-z][A-Za-z0-9_-]*$/.test(algorithm)) {
    return explanation(
      "digest-without-algorithm",
      code,
      "Write Content-Digest as sha-256=:<base64>:, the name of the algorithm first.",
    );
  }
  const form = explainValue(value, code, context);
  if (form !== undefined) return form;
  return explanation(
    "digest-form",
    code,
    "Write Content-Digest as sha-256=:<base64>:, the digest in base64 with its padding between two colons.",
  );
}

// The others fit: what they are the digest of says nothing.
function wrongMember(field: string, { body = new Uint8Array() }: DigestContext): string {
  const members = field.split(",").map((member) => member.trim());
  const wrong = members.find((member) => {
    try {
      verifyContentDigest({ rawHeaders: ["content-digest", member] }, body);
      return false;
    } catch {
      return true;
    }
  });
  return wrong ?? field;
}

function valueOf(field: string): string {
  return /=(:[^:,]*:)/.exec(field)?.[1] ?? "";
}

const hashes = [
  ["sha256", "SHA-256"],
  ["sha512", "SHA-512"],
  ["sha1", "SHA-1"],
  ["md5", "MD5"],
  ["sha384", "SHA-384"],
] as const;

/** What the value is: the digest of these bytes written otherwise, by another algorithm, or of other bytes. */
function explainValue(value: string, code: string, { body }: DigestContext): Explanation | undefined {
  const text = value.replaceAll(/^[:"']|[:"']$/g, "");
  const itself = body === undefined ? [] : [{ what: "", says: "", bytes: Buffer.from(body) }];
  const all = [...itself, ...bodyVariants(body)];
  for (const variant of all) {
    for (const [algorithm, name] of hashes) {
      const form = formOf(text, Buffer.from(hash(algorithm, variant.bytes, "hex"), "hex"), value);
      if (form === undefined) continue;
      return explainFound({ variant, name, form }, code);
    }
  }
  return undefined;
}

interface FoundDigest {
  readonly variant: { readonly what: string; readonly says: string };
  readonly name: string;
  readonly form: string;
}

function explainFound({ variant, name, form }: FoundDigest, code: string): Explanation {
  const written = form === "" ? "" : `; it is written ${form}`;
  if (variant.what !== "") {
    return explanation(
      `digest-of-${variant.what}`,
      code,
      `Compute Content-Digest over the bytes that are sent: it is the ${name} digest of ${variant.says}${written}.`,
    );
  }
  if (form !== "") {
    return explanation(
      `digest-${form.includes("hex") ? "hex" : form.includes("base64url") ? "base64url" : "form"}`,
      code,
      `Write the digest of Content-Digest in base64 between two colons, sha-256=:<base64>:, since it is there ${form}.`,
    );
  }
  return explanation(
    "digest-algorithm-name",
    code,
    `Name the algorithm of Content-Digest that was used: the digest is one by ${name}.`,
  );
}

/** How a digest stands in a text; empty when it is base64 between colons, undefined when it does not. */
function formOf(text: string, digest: Buffer, value: string): string | undefined {
  const base64 = digest.toString("base64");
  const hex = digest.toString("hex");
  const colons = value.startsWith(":") && value.endsWith(":");
  if (text === base64) return colons ? "" : "without the colons";
  if (text.toLowerCase() === hex) return "in hex";
  if (text === Buffer.from(hex).toString("base64")) return "in hex, and that in base64";
  if (text === digest.toString("base64url")) return "in base64url without padding";
  if (text === base64.replaceAll("+", "-").replaceAll("/", "_")) return "in base64url";
  if (text === base64.replace(/=+$/, "")) return "without the padding";
  if (text === Buffer.from(base64).toString("base64")) return "in base64 twice";
  return undefined;
}

function explainOther(code: string): Explanation {
  return explanation(
    "digest-unexplained",
    code,
    "Compute Content-Digest over the bytes that are sent: it fits neither the body nor any usual form of it, so the body was changed on its way, or the digest is that of another one.",
  );
}
