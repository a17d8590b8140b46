import {
  constants,
  createHash,
  createHmac,
  hash,
  timingSafeEqual,
  verify,
  type KeyObject,
} from "node:crypto";
import { fieldLines } from "@countersign/core";
import { isSignatureOf } from "@countersign/http-message-signatures";
import { ed25519ph } from "@noble/curves/ed25519.js";
import { bodyVariants, maxSignedBodyBytes } from "./body-variants.ts";
import type { Draft, NearMiss } from "./draft.ts";
import { quoted } from "./explanation.ts";
import { miss, type MismatchContext } from "./near-miss.ts";
import { signatureForms } from "./signature-forms.ts";

/** Near misses in what is done with a base: hashed, encoded, replaced, signed with another key, written otherwise. */
export function signingMisses(context: MismatchContext): readonly NearMiss[] {
  return [
    ...keyMisses(context),
    ...labelMisses(context),
    ...formMisses(context),
    ...hashedMisses(context),
    ...algorithmMisses(context),
    ...otherContent(context),
  ];
}

const maxKeys = 100;

function keyMisses({ keys, right }: MismatchContext): readonly NearMiss[] {
  return [...keys.values()]
    .filter((key) => key.keyid !== right.key.keyid)
    .slice(0, maxKeys)
    .map((key, index) =>
      miss(
        "key-other",
        "key",
        `Name the key that signs: keyid is ${quoted(right.key.keyid)}, and the signature fits the key ${quoted(key.keyid)}.`,
        (draft) => ({ ...draft, key }),
        index < 3,
      ),
    );
}

function labelMisses({ otherSignatures, label }: MismatchContext): readonly NearMiss[] {
  return [...otherSignatures].map(([other, signature]) =>
    miss(
      "label-other",
      "signature",
      `Give the members of Signature-Input and Signature the labels that belong together: what Signature has under ${quoted(other)} fits ${quoted(label)} of Signature-Input.`,
      (draft) => ({ ...draft, signature }),
    ),
  );
}

function formMisses({ right }: MismatchContext): readonly NearMiss[] {
  return signatureForms(right.signature).map(({ what, says, bytes }) =>
    miss(
      what,
      "signature",
      `Put the bytes of the signature into Signature, in base64 between colons: they are there ${says}.`,
      (draft) => ({ ...draft, signature: bytes }),
      what === "signature-hex" || what === "signature-der",
    ),
  );
}

function hashedMisses({ right }: MismatchContext): readonly NearMiss[] {
  const hashesItself = right.key.alg !== "ed25519";
  const advice = hashesItself
    ? `Sign the signature base itself: ${right.key.alg} hashes it once more,`
    : "Sign the signature base itself, all of it, since Ed25519 takes no digest:";
  const rows: readonly (readonly [string, string, (base: Buffer) => Buffer, boolean])[] = [
    ["sha256", "its SHA-256 digest", (base) => digestOf("sha256", base), true],
    ["sha512", "its SHA-512 digest", (base) => digestOf("sha512", base), true],
    ["sha256", "its SHA-256 digest in hex", (base) => Buffer.from(hash("sha256", base, "hex")), true],
    ["sha512", "its SHA-512 digest in hex", (base) => Buffer.from(hash("sha512", base, "hex")), false],
    ["sha256", "its SHA-256 digest in base64", (base) => Buffer.from(hash("sha256", base, "base64")), true],
    ["sha512", "its SHA-512 digest in base64", (base) => Buffer.from(hash("sha512", base, "base64")), false],
    ["sha384", "its SHA-384 digest", (base) => digestOf("sha384", base), false],
    ["sha1", "its SHA-1 digest", (base) => digestOf("sha1", base), false],
    [
      "sha256-twice",
      "the SHA-256 digest of its SHA-256 digest",
      (base) => digestOf("sha256", digestOf("sha256", base)),
      false,
    ],
  ];
  const hashed = rows.map(([name, says, finish, isUsual]) =>
    miss(
      `base-${hashesItself ? "hashed-twice" : "prehashed"}-${name}`,
      "finish",
      `${advice} the signature fits ${says}.`.replace(", the", ", and the"),
      (draft) => ({ ...draft, finish }),
      isUsual,
    ),
  );
  const encodings: readonly (readonly [string, (base: Buffer) => Buffer])[] = [
    ["base64", (base) => Buffer.from(base.toString("base64"))],
    ["hex", (base) => Buffer.from(base.toString("hex"))],
    ["UTF-16", (base) => Buffer.from(base.toString("utf8"), "utf16le")],
    ["URL encoding", (base) => Buffer.from(encodeURIComponent(base.toString("utf8")))],
    ["JSON, as a string", (base) => Buffer.from(JSON.stringify(base.toString("utf8")))],
  ];
  return [
    ...hashed,
    ...encodings.map(([name, finish]) =>
      miss(
        "base-encoded",
        "finish",
        `Sign the ASCII bytes of the signature base: the signature fits the base in ${name}.`,
        (draft) => ({ ...draft, finish }),
      ),
    ),
  ];
}

function digestOf(algorithm: string, bytes: Uint8Array): Buffer {
  return createHash(algorithm).update(bytes).digest();
}

interface Way {
  readonly says: string;
  readonly verify: (key: KeyObject, data: Uint8Array, signature: Uint8Array) => boolean;
}

function algorithmMisses({ right }: MismatchContext): readonly NearMiss[] {
  const { alg } = right.key;
  return waysBeside(alg).map(({ says, verify: fits }) =>
    miss(
      "algorithm-other",
      "algorithm",
      `Sign by ${alg}, which the key is for: the signature fits by ${says}.`,
      (draft: Draft) => ({
        ...draft,
        verify: ({ publicKey }, data, signature) => fits(publicKey, data, signature),
      }),
    ),
  );
}

function waysBeside(alg: string): readonly Way[] {
  if (alg === "ed25519") return [{ says: "Ed25519ph, which signs a digest", verify: verifyPrehash }];
  if (alg.startsWith("ecdsa")) {
    return ["sha1", "sha256", "sha384", "sha512"].flatMap((digest) =>
      (["ieee-p1363", "der"] as const).map((dsaEncoding) => ({
        says: `ECDSA with ${digest}${dsaEncoding === "der" ? ", written in DER" : ""}`,
        verify: (key, data, signature) => verify(digest, data, { key, dsaEncoding }, signature),
      })),
    );
  }
  if (alg === "hmac-sha256") return secretWays;
  if (!alg.startsWith("rsa")) return [];
  const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_AUTO } = constants;
  return ["sha256", "sha384", "sha512", "sha1"].flatMap((digest) => [
    {
      says: `RSASSA-PKCS1-v1_5 with ${digest}`,
      verify: (key, data, signature) => verify(digest, data, { key, padding: RSA_PKCS1_PADDING }, signature),
    },
    {
      says: `RSASSA-PSS with ${digest}, or with a salt of another length`,
      verify: (key, data, signature) =>
        verify(
          digest,
          data,
          { key, padding: RSA_PKCS1_PSS_PADDING, saltLength: RSA_PSS_SALTLEN_AUTO },
          signature,
        ),
    },
  ]);
}

// Which reading of the secret is told, never what comes of it.
const secretWays: readonly Way[] = (
  [
    ["the secret's text in base64", (secret) => Buffer.from(secret.toString("base64"))],
    ["the secret's text in hex", (secret) => Buffer.from(secret.toString("hex"))],
    ["the secret decoded from base64", (secret) => Buffer.from(secret.toString("latin1"), "base64")],
    ["the secret decoded from hex", (secret) => Buffer.from(secret.toString("latin1"), "hex")],
  ] as readonly (readonly [string, (secret: Buffer) => Buffer])[]
).map(([says, read]) => ({
  says: `HMAC with ${says} as its key`,
  verify: (key, data, signature) => {
    const mac = createHmac("sha256", read(key.export())).update(data).digest();
    return mac.length === signature.length && timingSafeEqual(mac, signature);
  },
}));

function verifyPrehash(key: KeyObject, data: Uint8Array, signature: Uint8Array): boolean {
  const raw = Buffer.from(key.export({ format: "jwk" }).x ?? "", "base64url");
  return ed25519ph.verify(signature, data, raw);
}

type OtherContent = readonly [what: string, says: string, content: string | Uint8Array];

function contentOfBody(
  { method, target, member }: MismatchContext,
  body: Uint8Array,
): readonly OtherContent[] {
  const path = target.split("?")[0] ?? "";
  const parameter = (name: string): string => new RegExp(`;${name}="?([^";]*)`).exec(member)?.[1] ?? "";
  const created = parameter("created");
  const digest = digestOf("sha256", body);
  const text = Buffer.from(body).toString("utf8");
  return [
    ["signed-body", "the body alone", body],
    ["signed-digest", "the digest of the body alone", digest],
    ["signed-digest", "the digest of the body in hex alone", digest.toString("hex")],
    ["signed-text", "created, a dot and the body", `${created}.${text}`],
    ["signed-text", "nonce, a dot and the body", `${parameter("nonce")}.${text}`],
    ["signed-text", "method, path and body", method + path + text],
    ["signed-text", "method, path and body in lines", [method, path, text].join("\n")],
    ["signed-text", "method, path, created and body in lines", [method, path, created, text].join("\n")],
  ];
}

function otherContent(context: MismatchContext): readonly NearMiss[] {
  const { body, member, right } = context;
  const [digestField = ""] = fieldLines(context, "content-digest");
  const pieces: readonly OtherContent[] = [
    ...(body === undefined || body.length > maxSignedBodyBytes ? [] : contentOfBody(context, body)),
    ["signed-digest", "the value of Content-Digest alone", digestField],
    ["signed-params", "the value of Signature-Input alone", member],
    ["signed-params", 'the value of "@signature-params" alone', right.params?.value ?? ""],
    [
      "signed-values",
      "the values of the components in lines",
      right.lines.map(({ value }) => value).join("\n"),
    ],
    [
      "signed-values",
      "the values of the components in a row",
      right.lines.map(({ value }) => value).join(""),
    ],
    ...bodyVariants(body).map(({ says, bytes }): OtherContent => ["signed-body", says, bytes]),
    ...cavageBases(context).map((base): OtherContent => [
      "signed-cavage-base",
      "the signing string of the older draft-cavage-http-signatures",
      base,
    ]),
  ];
  return pieces.map(([what, says, content]) => {
    const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : Buffer.from(content);
    return miss(
      what,
      "finish",
      `Sign the signature base of RFC 9421 section 2.5, one line for each component and "@signature-params" last: the signature fits ${says}.`,
      (draft) => ({ ...draft, finish: () => bytes, verify: isSignatureOf }),
    );
  });
}

// draft-cavage-http-signatures-12 section 2.3, of the fields that are usual and of those that are covered.
function cavageBases(context: MismatchContext): readonly string[] {
  const { method, target, right } = context;
  const requestTarget = `(request-target): ${method.toLowerCase()} ${target}`;
  const line = (name: string): readonly string[] =>
    fieldLines(context, name)
      .slice(0, 1)
      .map((value) => `${name}: ${value.trim()}`);
  const covered = right.lines
    .map(({ identifier }) => identifier.replaceAll('"', ""))
    .filter((name) => !name.startsWith("@"))
    .flatMap(line);
  const times = [`(created): ${/;created=(\d+)/.exec(context.member)?.[1] ?? ""}`];
  const lists: readonly (readonly string[])[] = [
    [requestTarget, ...covered],
    [requestTarget, ...line("host"), ...line("date"), ...line("digest")],
    [requestTarget, ...line("host"), ...line("date"), ...line("content-type"), ...line("content-digest")],
    [requestTarget, ...line("host"), ...covered],
    [requestTarget, ...line("host"), ...line("date"), ...covered],
    [requestTarget, ...line("date"), ...covered],
    [requestTarget, ...times, ...covered],
    [requestTarget, ...times, ...line("host"), ...covered],
    [...line("date")],
    [requestTarget],
  ];
  return lists.map((lines) => lines.join("\n"));
}
