import {
  constants,
  createHash,
  createHmac,
  timingSafeEqual,
  verify,
  type KeyObject,
  type VerifyKeyObjectInput,
} from "node:crypto";
import { fieldLines } from "@countersign/core/internal";
import { isSignatureOf } from "@countersign/http-message-signatures/internal";
import type { VerificationKey } from "@countersign/http-message-signatures";
import { ed25519ph } from "@noble/curves/ed25519.js";
import { bodyVariants, maxSignedBodyBytes } from "./body-variants.ts";
import type { Draft, MismatchContext } from "./draft.ts";
import { quoted } from "./explanation.ts";
import { missesOf, type NearMiss, type Row } from "./near-miss.ts";
import { signatureForms } from "./signature-forms.ts";

const maxKeys = 100;

/** Near misses in what a signer does with its base: hashes, encodes or replaces it, or signs with another key. */
export function signingMisses(context: MismatchContext): readonly NearMiss<Draft>[] {
  const { right, keys, label, otherSignatures } = context;
  const { alg, keyid } = right.key;
  const otherKeys = [...keys.values()].filter((key) => key.keyid !== keyid).slice(0, maxKeys);
  const hashedAgain =
    alg === "ed25519"
      ? "Sign the signature base itself, all of it, since Ed25519 takes no digest: the signature fits"
      : `Sign the signature base itself: ${alg} hashes it once more, and the signature fits`;
  return [
    ...missesOf<Draft, VerificationKey>(
      otherKeys.map((key, index) => ["key-other", quoted(key.keyid), [key], index < 3 ? "usual" : undefined]),
      {
        part: "key",
        says: (name) =>
          `Name the key that signs: keyid is ${quoted(keyid)}, and the signature fits the key ${name}.`,
        put: (draft, key) => ({ ...draft, key }),
      },
    ),
    ...missesOf<Draft, Uint8Array>(
      [...otherSignatures].map(([other, bytes]) => ["label-other", quoted(other), [bytes]]),
      {
        part: "signature",
        says: (other) =>
          `Give the members of Signature-Input and Signature the labels that belong together: what Signature has under ${other} fits ${quoted(label)} of Signature-Input.`,
        put: withSignature,
      },
    ),
    ...missesOf(signatureForms(right.signature), { part: "signature", says: saysForm, put: withSignature }),
    ...missesOf(derWays(alg), { part: "signature", says: saysForm, put: withVerify }),
    ...missesOf(hashedBy(alg), { part: "finish", says: (how) => `${hashedAgain} ${how}.`, put: withFinish }),
    ...missesOf(encodings, {
      part: "finish",
      says: (how) => `Sign the ASCII bytes of the signature base: the signature fits the base in ${how}.`,
      put: withFinish,
    }),
    ...missesOf<Draft, Verify>(waysBeside(alg), {
      part: "algorithm",
      says: (how) => `Sign by ${alg}, which the key is for: the signature fits by ${how}.`,
      put: withVerify,
    }),
    ...missesOf<Draft, string | Uint8Array>(otherContents(context), {
      part: "finish",
      says: (how) =>
        `Sign the signature base of RFC 9421 section 2.5, one line for each component and "@signature-params" last: the signature fits ${how}.`,
      put: (draft, content) => {
        const bytes = Buffer.from(content);
        return { ...draft, finish: () => bytes, verify: isSignatureOf };
      },
    }),
  ];
}

function withSignature(draft: Draft, signature: Uint8Array): Draft {
  return { ...draft, signature };
}

function withFinish(draft: Draft, finish: Finish): Draft {
  return { ...draft, finish };
}

function withVerify(draft: Draft, fits: Verify): Draft {
  return { ...draft, verify: ({ publicKey }, data, signature) => fits(publicKey, data, signature) };
}

function saysForm(how: string): string {
  return `Put the bytes of the signature into Signature, in base64 between colons: they are there ${how}.`;
}

type Finish = Draft["finish"];

const hashed = (["sha256", "sha512"] as const).flatMap((algorithm): readonly Row<Finish>[] => {
  const digest = `its ${algorithm.replace("sha", "SHA-")} digest`;
  const inText = (encoding: "base64" | "hex"): readonly Finish[] => [
    (base) => Buffer.from(digestOf(algorithm, base).toString(encoding)),
  ];
  return [
    [algorithm, digest, [(base) => digestOf(algorithm, base)], "usual"],
    [algorithm, `${digest} in hex`, inText("hex"), "usual"],
    [algorithm, `${digest} in base64`, inText("base64"), "usual"],
  ];
});
const encodings = (["base64", "hex"] as const).map((encoding): Row<Finish> => [
  "base-encoded",
  encoding,
  [(base) => Buffer.from(base.toString(encoding))],
]);

function hashedBy(alg: string): readonly Row<Finish>[] {
  const prefix = alg === "ed25519" ? "base-prehashed" : "base-hashed-twice";
  return hashed.map(([name, how, finish, isUsual]) => [`${prefix}-${name}`, how, finish, isUsual]);
}

function digestOf(algorithm: string, bytes: Uint8Array): Buffer {
  return createHash(algorithm).update(bytes).digest();
}

type Verify = (key: KeyObject, data: Uint8Array, signature: Uint8Array) => boolean;

const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_AUTO } = constants;
const digests = ["sha1", "sha256", "sha384", "sha512"];

function wayBy(digest: string, options: Omit<VerifyKeyObjectInput, "key">): Verify {
  return (key, data, signature) => verify(digest, data, { key, ...options }, signature);
}

// OpenSSL writes ECDSA in DER; RFC 9421 section 3.3.4 has r and s alone.
function derWays(alg: string): readonly Row<Verify>[] {
  if (!alg.startsWith("ecdsa")) return [];
  const way = wayBy(`sha${alg.slice(-3)}`, { dsaEncoding: "der" });
  return [["signature-der", "in DER, not as r and s", [way], "usual"]];
}

const ecdsaWays = digests.flatMap((digest): readonly Row<Verify>[] => [
  ["algorithm-other", `ECDSA with ${digest}`, [wayBy(digest, { dsaEncoding: "ieee-p1363" })]],
  ["algorithm-other", `ECDSA with ${digest}, written in DER`, [wayBy(digest, { dsaEncoding: "der" })]],
]);
const anySalt = { padding: RSA_PKCS1_PSS_PADDING, saltLength: RSA_PSS_SALTLEN_AUTO };
const rsaWays = digests.flatMap((digest): readonly Row<Verify>[] => {
  const pss = `RSASSA-PSS with ${digest}, or with a salt of another length`;
  return [
    ["algorithm-other", `RSASSA-PKCS1-v1_5 with ${digest}`, [wayBy(digest, { padding: RSA_PKCS1_PADDING })]],
    ["algorithm-other", pss, [wayBy(digest, anySalt)]],
  ];
});
const byPrehash: Verify = (key, data, signature) =>
  ed25519ph.verify(signature, data, Buffer.from(key.export({ format: "jwk" }).x ?? "", "base64url"));
const prehash: Row<Verify> = ["algorithm-other", "Ed25519ph, which signs a digest", [byPrehash]];

// The sentence names the reading of the secret, never its result.
const readings: readonly (readonly [how: string, read: (secret: Buffer) => string | Buffer])[] = [
  ["the secret's text in base64", (secret) => secret.toString("base64")],
  ["the secret's text in hex", (secret) => secret.toString("hex")],
  ["the secret decoded from base64", (secret) => Buffer.from(secret.toString("latin1"), "base64")],
  ["the secret decoded from hex", (secret) => Buffer.from(secret.toString("latin1"), "hex")],
];
const secretWays = readings.map(([how, read]): Row<Verify> => {
  const byReading: Verify = (key, data, signature) => {
    const mac = createHmac("sha256", read(key.export())).update(data).digest();
    return mac.length === signature.length && timingSafeEqual(mac, signature);
  };
  return ["algorithm-other", `HMAC with ${how} as its key`, [byReading]];
});

function waysBeside(alg: string): readonly Row<Verify>[] {
  if (alg === "ed25519") return [prehash];
  if (alg === "hmac-sha256") return secretWays;
  if (alg.startsWith("ecdsa")) return ecdsaWays;
  return alg.startsWith("rsa") ? rsaWays : [];
}

function otherContents(context: MismatchContext): readonly Row<string | Uint8Array>[] {
  const { body, member, right } = context;
  const values = right.lines.map(({ value }) => value);
  const [digestField = ""] = fieldLines(context, "content-digest");
  return [
    ...(body === undefined || body.length > maxSignedBodyBytes ? [] : contentOfBody(context, body)),
    ["signed-digest", "the value of Content-Digest alone", [digestField]],
    ["signed-params", "the value of Signature-Input alone", [member]],
    ["signed-params", 'the value of "@signature-params" alone', [right.params?.value ?? ""]],
    ["signed-values", "the values of the components in lines", [values.join("\n")]],
    ["signed-values", "the values of the components in a row", [values.join("")]],
    ...bodyVariants(body).map(({ says, bytes }): Row<Uint8Array> => ["signed-body", says, [bytes()]]),
    [
      "signed-cavage-base",
      "the signing string of the older draft-cavage-http-signatures",
      cavageBases(context),
    ],
  ];
}

function parameterOf(member: string, name: string): string {
  return new RegExp(`;${name}="?([^";]*)`).exec(member)?.[1] ?? "";
}

function contentOfBody(
  { method, target, member }: MismatchContext,
  body: Uint8Array,
): readonly Row<string | Uint8Array>[] {
  const [path = ""] = target.split("?");
  const created = parameterOf(member, "created");
  const digest = digestOf("sha256", body);
  const text = Buffer.from(body).toString("utf8");
  return [
    ["signed-body", "the body alone", [body]],
    ["signed-digest", "the digest of the body alone", [digest]],
    ["signed-digest", "the digest of the body in hex alone", [digest.toString("hex")]],
    ["signed-text", "created, a dot and the body", [`${created}.${text}`]],
    ["signed-text", "method, path and body", [method + path + text]],
  ];
}

// draft-cavage-http-signatures-12 section 2.3, of the usual and of the covered fields.
function cavageBases(context: MismatchContext): readonly string[] {
  const { method, target, right, member } = context;
  const covered = right.lines.flatMap(({ identifier }) => /^"([^@"][^"]*)"$/.exec(identifier)?.[1] ?? []);
  const lineOf = (name: string): readonly string[] => {
    if (name === "(request-target)") return [`${name}: ${method.toLowerCase()} ${target}`];
    if (name === "(created)") return [`${name}: ${parameterOf(member, "created")}`];
    const [value] = fieldLines(context, name);
    return value === undefined ? [] : [`${name}: ${value.trim()}`];
  };
  const lists: readonly (readonly string[])[] = [
    ["(request-target)", ...covered],
    ["(request-target)", "host", "date", "digest"],
    ["(request-target)", "host", ...covered],
    ["(request-target)", "host", "date", ...covered],
    ["(request-target)", "(created)", "host", ...covered],
    ["date"],
  ];
  return lists.map((names) => names.flatMap(lineOf).join("\n"));
}
