// Payouts signed as the service does: node:crypto and string concatenation, no code of the project.
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { signRequest } from "@countersign/test-support/signers/independent-signer.ts";

export interface TestKey {
  readonly keyid: string;
  readonly privateKey: KeyObject;
  readonly publicKeyPem: string;
}

export function makeTestKey(keyid: string): TestKey {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { keyid, privateKey, publicKeyPem: String(publicKey.export({ type: "spki", format: "pem" })) };
}

export type SignedHeaders = Readonly<
  Record<"Content-Type" | "Content-Digest" | "Signature-Input" | "Signature", string>
>;

export function signPayout({ keyid, privateKey: key }: TestKey, path: string, body: string): SignedHeaders {
  const { headers } = signRequest({ path, body, key, keyid });
  const pairs = headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]]] : []));
  return Object.fromEntries(pairs) as SignedHeaders;
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
