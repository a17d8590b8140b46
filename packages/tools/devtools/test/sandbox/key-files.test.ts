import { existsSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import { generateKeyPair, writeKeyFiles } from "../../src/sandbox/index.ts";
import { KeyFileError, importPrivateKey } from "../../src/internal.ts";
import { createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";

describe("writeKeyFiles", () => {
  let directory: string;
  beforeEach(() => {
    directory = testFolder();
  });

  const keysJson = (): unknown => JSON.parse(readFileSync(join(directory, "keys.json"), "utf8"));

  test("writes both halves and the entry of keys.json, the private one for its owner alone", () => {
    const pair = generateKeyPair({ keyid: "key-1" });
    const files = writeKeyFiles(pair, { directory });
    expect(readFileSync(files.privateKeyFile, "utf8")).toBe(pair.privateKeyPem);
    expect(readFileSync(files.publicKeyFile, "utf8")).toBe(pair.publicKeyPem);
    expect(statSync(files.privateKeyFile).mode & 0o777).toBe(0o600);
    expect(keysJson()).toEqual({ "key-1": pair.publicKeyPem });
    expect(new Set(readdirSync(directory))).toEqual(
      new Set(["key-1.private.pem", "key-1.public.pem", "keys.json"]),
    );
  });

  test("gives each directory that it creates to its owner alone", () => {
    const { keysFile } = writeKeyFiles(generateKeyPair(), { directory: join(directory, "a", "b") });
    expect(existsSync(keysFile)).toBe(true);
    for (const made of ["a", join("a", "b")]) {
      expect(statSync(join(directory, made)).mode & 0o777).toBe(0o700);
    }
  });

  test.each([
    ["a file for the directory", () => join(directory, "file")],
    ["a file above the directory", () => join(directory, "file", "a")],
  ])("refuses %s", (_name, place) => {
    writeFileSync(join(directory, "file"), "mine");
    const write = (): unknown => writeKeyFiles(generateKeyPair(), { directory: place() });
    expect(write).toThrow(KeyFileError);
    expect(write).toThrow(/^cannot write the key files: E[A-Z]+: /);
  });

  test("keeps the other keys of keys.json", () => {
    writeFileSync(join(directory, "keys.json"), JSON.stringify({ old: "pem", jwk: { kty: "OKP" } }));
    const pair = generateKeyPair({ keyid: "new" });
    writeKeyFiles(pair, { directory });
    expect(keysJson()).toEqual({ old: "pem", jwk: { kty: "OKP" }, new: pair.publicKeyPem });
  });

  test.each(["key-1.private.pem", "key-1.public.pem"])("leaves everything alone when %s exists", (file) => {
    writeFileSync(join(directory, file), "mine");
    expect(() => writeKeyFiles(generateKeyPair({ keyid: "key-1" }), { directory })).toThrow(KeyFileError);
    expect(readdirSync(directory)).toEqual([file]);
    expect(readFileSync(join(directory, file), "utf8")).toBe("mine");
  });

  test("leaves everything alone when keys.json has the keyid", () => {
    writeFileSync(join(directory, "keys.json"), '{"key-1":"mine"}');
    expect(() => writeKeyFiles(generateKeyPair({ keyid: "key-1" }), { directory })).toThrow("--force");
    expect(readdirSync(directory)).toEqual(["keys.json"]);
  });

  test("replaces all three by force and narrows the mode of the private key", () => {
    writeFileSync(join(directory, "key-1.private.pem"), "old", { mode: 0o644 });
    writeFileSync(join(directory, "keys.json"), '{"key-1":"old","other":"kept"}');
    const pair = generateKeyPair({ keyid: "key-1" });
    const { privateKeyFile } = writeKeyFiles(pair, { directory, force: true });
    expect(readFileSync(privateKeyFile, "utf8")).toBe(pair.privateKeyPem);
    expect(statSync(privateKeyFile).mode & 0o777).toBe(0o600);
    expect(keysJson()).toEqual({ "key-1": pair.publicKeyPem, other: "kept" });
  });

  test("replaces a symbolic link by force instead of writing where it points", () => {
    const elsewhere = join(directory, "elsewhere");
    writeFileSync(elsewhere, "untouched");
    symlinkSync(elsewhere, join(directory, "key-1.private.pem"));
    writeKeyFiles(generateKeyPair({ keyid: "key-1" }), { directory, force: true });
    expect(readFileSync(elsewhere, "utf8")).toBe("untouched");
  });

  test.each([
    ["a list", "[]"],
    ["no JSON", "{"],
  ])("refuses a keys.json that is %s, even by force", (_name, text) => {
    writeFileSync(join(directory, "keys.json"), text);
    expect(() => writeKeyFiles(generateKeyPair(), { directory, force: true })).toThrow("move it away");
    expect(readdirSync(directory)).toEqual(["keys.json"]);
  });

  test.each([
    ["a path separator", "../key"],
    ["a leading dot", ".key"],
    ["a prototype name", "__proto__"],
    ["white space", "key 1"],
    ["65 characters", "k".repeat(65)],
  ])("refuses a keyid with %s", (_name, keyid) => {
    expect(() => writeKeyFiles(generateKeyPair({ keyid }), { directory })).toThrow(KeyFileError);
    expect(readdirSync(directory)).toEqual([]);
  });
});

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
  const encryption = { cipher: "aes-256-cbc", passphrase: "p" };
  const encrypted = privateKey.export({ type: "pkcs8", format: "pem", ...encryption });

  test("returns a KeyObject as it is", () => {
    expect(importPrivateKey(privateKey)).toBe(privateKey);
  });

  test.each([
    ["text that is no PEM", "hello", "PEM form"],
    ["a public key", publicKey.export({ type: "spki", format: "pem" }) as string, "got a PUBLIC KEY"],
    ["an RSA key", rsa.export({ type: "pkcs8", format: "pem" }) as string, "got rsa"],
    ["an encrypted key", encrypted as string, "not encrypted"],
    ["a broken body", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "decoded"],
  ])("refuses %s", (_name, key, reason) => {
    expect(() => importPrivateKey(key)).toThrow(reason);
    expect(() => importPrivateKey(key)).not.toThrow("c2VjcmV0");
  });
});
