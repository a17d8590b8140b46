import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import type { ReceivedRequest } from "@countersign/core";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { httpSignatureVerifier, memoryNonceStore, type KeyLookup } from "@countersign/http-signature-verify";
import { signRequest } from "@countersign/test-support/signers/independent-signer.ts";
import {
  serviceKey,
  servicePublicPem,
  strangerPublicPem,
} from "@countersign/test-support/signers/test-keys.ts";

const publicKey = createPublicKey(servicePublicPem);
const jwk = publicKey.export({ format: "jwk" });

function received(keyid?: string): ReceivedRequest {
  const { method, path: target, headers: rawHeaders, body } = signRequest({ keyid });
  return { method, target, rawHeaders, scheme: "https", clientAddress: undefined, body: async () => body };
}

const verifierOf = (get: KeyLookup): ((request: ReceivedRequest) => Promise<unknown>) =>
  httpSignatureVerifier({ keys: { get }, nonces: memoryNonceStore() });

describe("a key store", () => {
  test.each<[string, () => unknown]>([
    ["an imported key", () => importVerificationKey("test-key", servicePublicPem)],
    ["a PEM", () => servicePublicPem],
    ["a PEM whose line feeds are written out", () => servicePublicPem.trim().replaceAll("\n", "\\n")],
    ["the bytes of a PEM", () => Buffer.from(servicePublicPem)],
    ["the SPKI in base64", () => publicKey.export({ format: "der", type: "spki" }).toString("base64")],
    ["the 32 bytes in base64url", () => jwk.x],
    ["a JWK", () => jwk],
    ["the JSON of a JWK", () => JSON.stringify(jwk)],
    ["a JWK Set", () => ({ keys: [{ ...jwk, kid: "test-key" }] })],
    ["a KeyObject", () => publicKey],
  ])("may return %s, each time or by a promise", async (_title, key) => {
    const verify = verifierOf(() => key() as never);
    await expect(verify(received())).resolves.toMatchObject({ keyid: "test-key" });
    await expect(verify(received())).resolves.toMatchObject({ keyid: "test-key" });
    await expect(verifierOf(async () => key() as never)(received())).resolves.toMatchObject({
      alg: "ed25519",
    });
  });

  const weak = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey;
  test.each<[string, unknown, RegExp]>([
    ["a private PEM", serviceKey.export({ format: "pem", type: "pkcs8" }), /"test-key".*is a private key/],
    ["a private KeyObject", serviceKey, /the KeyObject is a private key/],
    ["a private JWK", serviceKey.export({ format: "jwk" }), /private/],
    ["a weak RSA key", { ...weak.export({ format: "jwk" }), alg: "PS512" }, /RSA|2,?048/],
    [
      "a key of small order",
      { kty: "OKP", crv: "Ed25519", x: Buffer.alloc(32).toString("base64url") },
      /order|canonical/,
    ],
    ["an empty text", "", /the key is empty/],
    ["the path of a file", "keys/service.pem", /the path of a file/],
    ["a row of a database", { id: 7, pem: servicePublicPem }, /kty/],
    ["an object like an imported key", { keyid: "test-key", alg: "ed25519", publicKey }, /kty/],
    ["a number", 7, /a value of type number/],
    ["binary", publicKey.export({ format: "der", type: "spki" }), /binary/],
  ])("is 503 for %s, and the message names the fault and shows no key", async (_title, key, message) => {
    const verify = verifierOf(() => key as never);
    for (const _time of [1, 2]) {
      // oxlint-disable-next-line no-await-in-loop -- the second one is remembered
      const error = await verify(received()).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({
        status: 503,
        code: "key-unusable",
        headers: { "Retry-After": "5" },
        message: expect.stringMatching(message),
      });
      expect(String(error)).not.toMatch(/MC4CAQAw|BEGIN P/);
    }
  });

  test("is believed anew when it returns another value: a JWK that is revoked is refused", async () => {
    const stored: Record<string, unknown> = { ...jwk };
    const verify = verifierOf(() => stored);
    await expect(verify(received())).resolves.toMatchObject({ keyid: "test-key" });
    // The very object, changed.
    stored["revoked"] = { revoked_at: 0 };
    await expect(verify(received())).rejects.toMatchObject({ status: 401, code: "key-revoked" });
    let pem = servicePublicPem;
    const ofText = verifierOf(() => pem);
    await expect(ofText(received())).resolves.toMatchObject({ keyid: "test-key" });
    pem = strangerPublicPem;
    await expect(ofText(received())).rejects.toMatchObject({ status: 401, code: "signature-mismatch" });
  });

  test("may return one key for several keyids, each of which is its own", async () => {
    for (const key of [servicePublicPem, publicKey]) {
      const verify = verifierOf(() => key);
      for (const keyid of ["a", "b", "a"]) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        await expect(verify(received(keyid))).resolves.toMatchObject({ keyid });
      }
    }
  });
});
