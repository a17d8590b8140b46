// A sender of its own: node:crypto and string concatenation, no code of the project.
import { createHash, generateKeyPairSync, randomUUID, sign, type KeyObject } from "node:crypto";

export interface TestKey {
  readonly keyid: string;
  readonly privateKey: KeyObject;
  readonly publicKeyPem: string;
}

export function makeTestKey(keyid: string): TestKey {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { keyid, privateKey, publicKeyPem: String(publicKey.export({ type: "spki", format: "pem" })) };
}

export interface SignedHeaders {
  readonly "Content-Type": string;
  readonly "Content-Digest": string;
  readonly "Signature-Input": string;
  readonly Signature: string;
}

export function signPayout(key: TestKey, path: string, body: string): SignedHeaders {
  const digest = "sha-256=:" + createHash("sha256").update(body).digest("base64") + ":";
  const created = Math.floor(Date.now() / 1000);
  const params =
    '("@method" "@path" "content-type" "content-digest")' +
    ";created=" +
    created +
    ";expires=" +
    (created + 60) +
    ';keyid="' +
    key.keyid +
    '";alg="ed25519";nonce="' +
    randomUUID() +
    '"';
  const base =
    '"@method": POST\n' +
    '"@path": ' +
    path +
    "\n" +
    '"content-type": application/json\n' +
    '"content-digest": ' +
    digest +
    "\n" +
    '"@signature-params": ' +
    params;
  const signature = sign(null, Buffer.from(base), key.privateKey).toString("base64");
  return {
    "Content-Type": "application/json",
    "Content-Digest": digest,
    "Signature-Input": "sig1=" + params,
    Signature: "sig1=:" + signature + ":",
  };
}

export const business = { business_id: "b-1", iban: "DE89370400440532013000" };

/** The body of a payout as text; the amount has digits that a JSON round trip would lose. */
export function payoutBody(idempotencyKey: string, name = "Example Trading GmbH"): string {
  return (
    '{"idempotency_key":' +
    JSON.stringify(idempotencyKey) +
    ',"business_id":"b-1","beneficiary":{"iban":"DE89370400440532013000","bic":"COBADEFFXXX","name":' +
    JSON.stringify(name) +
    '},"amount":{"value":10.10,"currency":"EUR"}}'
  );
}
