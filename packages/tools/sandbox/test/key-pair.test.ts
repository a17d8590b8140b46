import { createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { generateKeyPair } from "../src/index.ts";
import { importPrivateKey } from "../src/protocol/index.ts";

describe("generateKeyPair", () => {
  test("makes an Ed25519 pair whose halves belong together", () => {
    const pair = generateKeyPair();
    const message = Buffer.from("a message");
    const signature = sign(null, message, importPrivateKey(pair.privateKeyPem));
    expect(createPublicKey(pair.publicKeyPem).asymmetricKeyType).toBe("ed25519");
    expect(verify(null, message, createPublicKey(pair.publicKeyPem), signature)).toBe(true);
  });

  test("makes another key and another keyid each time", () => {
    const [one, two] = [generateKeyPair(), generateKeyPair()];
    expect(one.keyid).toMatch(/^test-[0-9a-f]{8}$/);
    expect(one.keyid).not.toBe(two.keyid);
    expect(one.publicKeyPem).not.toBe(two.publicKeyPem);
  });

  test("keeps a given keyid", () => {
    expect(generateKeyPair({ keyid: "service/key 1" }).keyid).toBe("service/key 1");
  });

  test.each([
    ["empty", ""],
    ["too long", "k".repeat(257)],
    ["a line feed", "key\n1"],
    ["not ASCII", "clé"],
  ])("refuses a keyid that is %s", (_name, keyid) => {
    expect(() => generateKeyPair({ keyid })).toThrow(TypeError);
  });
});

describe("importPrivateKey", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const encrypted = privateKey.export({
    type: "pkcs8",
    format: "pem",
    cipher: "aes-256-cbc",
    passphrase: "p",
  });

  test("returns a KeyObject as it is", () => {
    expect(importPrivateKey(privateKey)).toBe(privateKey);
  });

  test.each([
    ["text that is no PEM", "hello", "PEM form"],
    ["a public key", publicKey.export({ type: "spki", format: "pem" }) as string, "got a PUBLIC KEY"],
    ["a public KeyObject", publicKey, "got a public key"],
    ["an RSA key", rsa.export({ type: "pkcs8", format: "pem" }) as string, "got rsa"],
    ["an encrypted key", encrypted as string, "not encrypted"],
    [
      "a PEM with a broken body",
      "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
      "decoded",
    ],
  ])("refuses %s", (_name, key, reason) => {
    expect(() => importPrivateKey(key)).toThrow(reason);
  });

  test("does not quote what it could not decode", () => {
    const pem = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
    expect(() => importPrivateKey(pem)).not.toThrow("c2VjcmV0");
  });
});
