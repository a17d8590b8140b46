import { createPrivateKey, createPublicKey, sign, type KeyObject } from "node:crypto";
import {
  importVerificationKey,
  type RequestMessage,
  type SignatureProfile,
  type VerificationKey,
  type VerifyOptions,
} from "@countersign/http-message-signatures";

// The public test key of RFC 9421 appendix B.1.4. Never use it outside tests.
export const privatePem = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----`;
export const privateKey: KeyObject = createPrivateKey(privatePem);
export const publicKey: KeyObject = createPublicKey(privateKey);
export const key: VerificationKey = importVerificationKey("test-key", publicKey);

/** The clock of the tests, in Unix seconds. */
export const now = 1_800_000_000;

export const profile: SignatureProfile = {
  requiredComponents: ["@method", "@path", "content-type", "content-digest"],
  algorithms: ["ed25519"],
  windowSeconds: 60,
  clockSkewSeconds: 30,
};
export const strict: VerifyOptions = {
  ...profile,
  keys: (keyid) => (keyid === "test-key" ? key : undefined),
  now,
};

const digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";

/** What a request is signed over and sent with; everything is text as it stands on the wire. */
export interface Draft {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
  /** Component identifiers as they stand in the inner list, with the value that is signed. */
  readonly covered: readonly (readonly [identifier: string, value: string])[];
  /** Serialised parameters by name, in order; undefined leaves one out. */
  readonly parameters: Readonly<Record<string, string | undefined>>;
  readonly label: string;
  readonly key: KeyObject;
}

const sample: Draft = {
  method: "POST",
  target: "/api/v1/transaction",
  headers: ["Host", "example.com", "Content-Type", "application/json", "Content-Digest", digest],
  covered: [
    ['"@method"', "POST"],
    ['"@path"', "/api/v1/transaction"],
    ['"content-type"', "application/json"],
    ['"content-digest"', digest],
  ],
  parameters: {
    created: String(now),
    expires: String(now + 60),
    keyid: '"test-key"',
    alg: '"ed25519"',
    nonce: '"n-0001"',
  },
  label: "sig1",
  key: privateKey,
};

/** The values of Signature-Input and Signature, and the base: RFC 9421 by string concatenation, no code of the package. */
export function signByHand(changes: Partial<Draft> = {}): {
  readonly draft: Draft;
  readonly input: string;
  readonly signature: string;
  readonly base: string;
} {
  const draft = { ...sample, ...changes, parameters: { ...sample.parameters, ...changes.parameters } };
  const parameters = Object.entries(draft.parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `;${name}=${value}`);
  const input = `(${draft.covered.map(([identifier]) => identifier).join(" ")})${parameters.join("")}`;
  const lines = draft.covered.map(([identifier, value]) => `${identifier}: ${value}\n`);
  const base = `${lines.join("")}"@signature-params": ${input}`;
  const bytes = sign(null, Buffer.from(base), draft.key);
  return {
    draft,
    input: `${draft.label}=${input}`,
    signature: `${draft.label}=:${bytes.toString("base64")}:`,
    base,
  };
}

export function signedRequest(changes: Partial<Draft> = {}): RequestMessage {
  const { draft, input, signature } = signByHand(changes);
  return {
    method: draft.method,
    target: draft.target,
    rawHeaders: [...draft.headers, "Signature-Input", input, "Signature", signature],
  };
}

export const sampleHeaders: readonly string[] = sample.headers;
export const sampleCovered: Draft["covered"] = sample.covered;

/** The code of the refusal, or "accepted". Anything thrown that is not the engine's own error fails the test. */
export function verdictOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof Error && error.name === "MessageSignatureError" && "code" in error) {
      return String(error.code);
    }
    throw error;
  }
  return "accepted";
}
