// A signer whose every step can be made wrong: node:crypto and string concatenation alone.
import { createHash, generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  samplePath,
  sha256Field,
  signRequest,
  withHeader,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem, serviceKey, strangerKey } from "@countersign/test-support/signers/test-keys.ts";
import type { ExplainedRequest } from "../../dist/explain/captured-request.js";
import type { ExplainSignatureOptions } from "../../dist/explain/index.js";

/** Unix seconds at which every sample is signed and explained. */
export const now = 1_700_000_000;
export const body = '{"amount":{"value":"10.00","currency":"EUR"},"name":"Zoë","url":"a/b"}';

/** A step of the signer that is made otherwise. */
export interface Mistake {
  readonly plan?: SigningPlan;
  /** What is signed of the right base. */
  readonly base?: (base: string) => string | Uint8Array;
  /** How these bytes are signed. */
  readonly sign?: (bytes: Uint8Array) => Uint8Array;
  /** What the bytes of the signature become in the field, behind the label. */
  readonly write?: (signature: Buffer) => string;
  /** Header lines beyond those of the signer, in front of them. */
  readonly headers?: readonly string[];
  readonly sent?: (headers: readonly string[]) => readonly string[];
  /** What becomes of method, target and body on the way. */
  readonly received?: Partial<ExplainedRequest>;
  /** The options of the explanation, beside those of `verifier`. */
  readonly options?: Partial<ExplainSignatureOptions>;
}

export const { privateKey: ecKey, publicKey: ecPublic } = generateKeyPairSync("ec", {
  namedCurve: "prime256v1",
});
export const { privateKey: rsaKey, publicKey: rsaPublic } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
});

export const pemOf = (key: KeyObject): string => key.export({ type: "spki", format: "pem" }).toString();

export const verifier: ExplainSignatureOptions = {
  keys: { "test-key": servicePublicPem },
  clock: () => now * 1000,
};

/** The request of a signer that makes this mistake. */
export function mistaken(mistake: Mistake = {}): ExplainedRequest {
  const { plan = {}, headers = [], received = {} } = mistake;
  const signed = signRequest({ created: now, nonce: "0c5a7f0e-8a4d-4e6a-9a70-3b1f3a1a7a55", body, ...plan });
  const toSign = mistake.base?.(signed.signatureBase) ?? signed.signatureBase;
  const bytes = typeof toSign === "string" ? Buffer.from(toSign, "utf8") : toSign;
  const signature = Buffer.from(mistake.sign?.(bytes) ?? sign(null, bytes, plan.key ?? serviceKey));
  const written = mistake.write?.(signature) ?? `:${signature.toString("base64")}:`;
  const lines = withHeader(
    signed.headers,
    "signature",
    (value) => `${value.slice(0, value.indexOf("="))}=${written}`,
  );
  const all = ["Host", "platform.example", ...headers, ...lines];
  return {
    method: signed.method,
    target: signed.path,
    rawHeaders: mistake.sent?.(all) ?? all,
    body: signed.body,
    ...received,
  };
}

export function line(identifier: string, change: (value: string) => string): (base: string) => string {
  return (base) =>
    base
      .split("\n")
      .map((text) =>
        text.startsWith(`${identifier}: `)
          ? `${identifier}: ${change(text.slice(identifier.length + 2))}`
          : text,
      )
      .join("\n");
}

export const sha = (algorithm: string, data: string | Uint8Array): Buffer =>
  createHash(algorithm).update(data).digest();

/** A digest field over something else than the body. */
export const digestPlan = (data: string | Buffer): SigningPlan => ({
  contentDigest: sha256Field(Buffer.from(data)),
});

export const header =
  (name: string, change: (value: string) => string | undefined) =>
  (headers: readonly string[]): readonly string[] =>
    withHeader(headers, name, change);

/** The lines of a file: a mistake, and the identifier and whole first sentence by which it is explained. */
export function explainedAs(file: "mistakes.txt" | "other-mistakes.txt") {
  const text = readFileSync(new URL(file, import.meta.url), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((row) => {
      const [mistake = "", what = "", says = ""] = row.split(" | ");
      return { mistake, what, says };
    });
}

export { samplePath, serviceKey, servicePublicPem, strangerKey, type SigningPlan };
