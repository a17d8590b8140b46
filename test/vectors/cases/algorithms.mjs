import { createHmac, createPublicKey } from "node:crypto";
import { algorithmFor, privateJwk, signingKey, verifierKey } from "../hand/keys.mjs";
import { vector } from "../hand/vector.mjs";

const keys = ["ed25519", "p256", "p384", "rsaPss", "rsa", "secret"];
const all = keys.map(algorithmFor);
const taken = { policy: { algorithms: all } };
const noAlg = {
  parameters: { alg: undefined },
  policy: { algorithms: all, requiredParameters: ["created", "expires", "keyid", "nonce"] },
};
const lengths = { ed25519: 64, p256: 64, p384: 96, rsaPss: 256, rsa: 256, secret: 32 };
const strangers = { ed25519: "otherEd25519", p256: "otherP256", rsa: "otherRsa", secret: "otherSecret" };

// A message that names an algorithm which is not the key's: each pair that could be taken for another.
const confused = keys.flatMap((name) =>
  keys
    .filter((other) => other !== name)
    .map((other) =>
      vector(
        `alg-${name}-as-${other}`,
        `A key of ${algorithmFor(name)} does not verify what says ${algorithmFor(other)}.`,
        {
          signWith: name,
          ...taken,
          // Of the length that the named algorithm has, so that nothing but the name is at fault.
          alter: (bytes) => Buffer.concat([bytes, Buffer.alloc(256)]).subarray(0, lengths[other]),
          parameters: { alg: `"${algorithmFor(other)}"` },
          code: "alg-mismatch",
        },
      ),
    ),
);

const publicEd25519 = createPublicKey(signingKey("ed25519"));
const publicForms = {
  bytes: Buffer.from(privateJwk("ed25519").x, "base64url"),
  spki: publicEd25519.export({ format: "der", type: "spki" }),
  pem: Buffer.from(publicEd25519.export({ format: "pem", type: "spki" })),
};
const hmacWithPublicKey = (id, shows, name) =>
  vector(`alg-hmac-under-${id}`, shows, {
    ...taken,
    signWith: "secret",
    keys: [verifierKey(name)],
    code: "alg-mismatch",
  });

function lengthsOf(name) {
  const code = name === "ed25519" ? "signature-malformed" : "signature-mismatch";
  const at = (id, shows, alter) =>
    vector(`length-${name}-${id}`, `${algorithmFor(name)}: ${shows}`, { signWith: name, alter, code });
  return [
    at("short", "a signature that is a byte short is refused.", (bytes) => bytes.subarray(0, -1)),
    at("long", "a signature with a zero byte behind it is refused.", (bytes) =>
      Buffer.concat([bytes, Buffer.alloc(1)]),
    ),
    at("leading-zero", "a signature with a zero byte before it is refused.", (bytes) =>
      Buffer.concat([Buffer.alloc(1), bytes]),
    ),
    at("one-byte", "a signature of one byte is refused.", () => Buffer.alloc(1)),
  ];
}

const wrong = (id, shows, signWith, by) => vector(id, shows, { signWith, by, code: "signature-mismatch" });

export const theme = "Algorithms (RFC 9421 section 3.3): all six, their lengths, and one taken for another";
export const cases = [
  ...keys.map((name) => vector(`valid-${name}`, `A signature by ${algorithmFor(name)}.`, { signWith: name })),
  ...keys.map((name) =>
    vector(`valid-${name}-no-alg`, `Without alg the algorithm is the key's: ${algorithmFor(name)}.`, {
      signWith: name,
      ...noAlg,
    }),
  ),
  ...Object.entries(strangers).map(([name, stranger]) =>
    vector(`other-key-${name}`, `${algorithmFor(name)}: another key is another signer.`, {
      signWith: name,
      keys: [verifierKey(stranger)],
      code: "signature-mismatch",
    }),
  ),
  vector("other-key-rsaPss", "rsa-pss-sha512: another key is another signer.", {
    signWith: "rsaPss",
    keys: [verifierKey("otherRsa", { algorithm: "rsa-pss-sha512" })],
    code: "signature-mismatch",
  }),
  ...confused,
  ...keys.flatMap(lengthsOf),
  vector("alg-not-taken", "An algorithm that the policy does not take is refused.", {
    policy: { algorithms: ["ecdsa-p256-sha256"] },
    code: "alg-mismatch",
  }),
  vector("alg-of-key-not-taken", "Without alg, that of the key has to be one that the policy takes.", {
    ...noAlg,
    policy: { ...noAlg.policy, algorithms: ["ecdsa-p256-sha256", "hmac-sha256"] },
    code: "alg-mismatch",
  }),
  vector("alg-unknown", "An algorithm that nobody knows is refused.", {
    parameters: { alg: '"hs2019"' },
    code: "alg-mismatch",
  }),
  vector("alg-case", "Names of algorithms are case-sensitive.", {
    parameters: { alg: '"Ed25519"' },
    code: "alg-mismatch",
  }),
  vector("alg-jose-name", "The names of JOSE are not those of RFC 9421.", {
    parameters: { alg: '"EdDSA"' },
    code: "alg-mismatch",
  }),
  vector("alg-none", "There is no algorithm none.", {
    parameters: { alg: '"none"' },
    alter: () => Buffer.alloc(64),
    code: "alg-mismatch",
  }),
  vector("alg-token", "alg is a string.", { parameters: { alg: "ed25519" }, code: "alg-invalid" }),
  vector("alg-empty", "alg is not empty.", { parameters: { alg: '""' }, code: "alg-invalid" }),
  vector("alg-absent", "alg is there where the policy requires it.", {
    parameters: { alg: undefined },
    code: "alg-invalid",
  }),
  hmacWithPublicKey(
    "ed25519",
    "What says hmac-sha256 is not verified under the public key of ed25519.",
    "ed25519",
  ),
  hmacWithPublicKey("rsa", "What says hmac-sha256 is not verified under a public RSA key.", "rsa"),
  ...Object.entries(publicForms).map(([form, bytes]) =>
    vector(
      `alg-hmac-by-public-${form}`,
      `An HMAC by the ${form} of a public key, which everybody has, is no signature under that key.`,
      {
        ...noAlg,
        // Twice, so that it is as long as a signature of the key.
        forge: (base) => Buffer.alloc(64, createHmac("sha256", bytes).update(base).digest()),
        code: "signature-mismatch",
      },
    ),
  ),
  wrong(
    "ecdsa-p256-der",
    "ecdsa-p256-sha256: a signature in DER is refused; RFC 9421 has r and s side by side.",
    "p256",
    "ecdsa-p256, in DER",
  ),
  wrong(
    "ecdsa-p256-sha384",
    "ecdsa-p256-sha256: a signature over another digest is refused.",
    "p256",
    "ecdsa-p256, by sha384",
  ),
  wrong(
    "ecdsa-p384-sha256",
    "ecdsa-p384-sha384: a signature over another digest is refused.",
    "p384",
    "ecdsa-p384, by sha256",
  ),
  wrong(
    "rsa-pss-salt-32",
    "rsa-pss-sha512: a salt of 32 bytes is refused; RFC 9421 has 64.",
    "rsaPss",
    "rsa-pss-sha512, salt of 32",
  ),
  wrong(
    "rsa-pss-salt-0",
    "rsa-pss-sha512: a signature without salt is refused.",
    "rsaPss",
    "rsa-pss-sha512, salt of 0",
  ),
  wrong(
    "rsa-pss-sha256",
    "rsa-pss-sha512: a signature over another digest is refused.",
    "rsaPss",
    "rsa-pss, by sha256",
  ),
  wrong(
    "rsa-v1_5-under-pss",
    "rsa-pss-sha512: a PKCS #1 v1.5 signature is refused, although the key is the same.",
    "rsaPss",
    "rsa-v1_5-sha256",
  ),
  wrong(
    "rsa-pss-under-v1_5",
    "rsa-v1_5-sha256: a PSS signature is refused, although the key is the same.",
    "rsa",
    "rsa-pss-sha512",
  ),
  wrong(
    "rsa-v1_5-sha512",
    "rsa-v1_5-sha256: a signature over another digest is refused.",
    "rsa",
    "rsa-v1_5, by sha512",
  ),
  wrong("rsa-v1_5-sha1", "rsa-v1_5-sha256: SHA-1 is refused.", "rsa", "rsa-v1_5, by sha1"),
];
