import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { testAuthority } from "@countersign/test-support/servers/certificates.ts";
import type { Environment } from "../src/environment.ts";
import type { SettingError } from "../src/setting-error.ts";
import { readTls } from "../src/tls.ts";
import { file, refusalOf } from "./setting-files.ts";

const issued = testAuthority().issue();
const files = { TLS_CERT: file("server.crt", issued.cert), TLS_KEY: file("server.key", issued.key) };

const errorOf = (env: Environment): SettingError => refusalOf(() => readTls({ ...files, ...env }));

describe("readTls", () => {
  test("is plain http where nothing is set", () => {
    expect(readTls({})).toBeUndefined();
  });

  test("reads certificate and key", () => {
    expect(readTls(files)).toEqual(issued);
  });

  test("reads the certificates of issuers behind the first", () => {
    const chain = issued.cert + testAuthority().cert;
    expect(readTls({ TLS_CERT: file("chain.crt", chain), TLS_KEY: files.TLS_KEY })?.cert).toBe(chain);
  });

  const foreign = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
  const encrypted = foreign.export({
    type: "pkcs8",
    format: "pem",
    cipher: "aes-256-cbc",
    passphrase: "test-passphrase",
  });
  test.each<[string, () => Environment, RegExp]>([
    ["no key", () => ({ TLS_KEY: undefined }), /^TLS_KEY: expected .*, because TLS_CERT is set$/],
    ["no certificate", () => ({ TLS_CERT: undefined }), /^TLS_CERT: expected .*, because TLS_KEY is set$/],
    ["an empty path of a certificate", () => ({ TLS_CERT: "" }), /^TLS_CERT: expected .*ENOENT/],
    ["an empty path of a key", () => ({ TLS_KEY: "" }), /^TLS_KEY: expected .*ENOENT/],
    ["a file that is not there", () => ({ TLS_CERT: "/nowhere/a.crt" }), /^TLS_CERT: expected .*ENOENT/],
    ["an empty certificate", () => ({ TLS_CERT: file("empty.crt", "") }), /^TLS_CERT: .*holds none/],
    ["an empty key", () => ({ TLS_KEY: file("empty.key", "") }), /^TLS_KEY: .*holds none/],
    ["a key for a certificate", () => ({ TLS_CERT: files.TLS_KEY }), /^TLS_CERT: .*holds none/],
    ["a certificate for a key", () => ({ TLS_KEY: files.TLS_CERT }), /^TLS_KEY: .*holds none/],
    ["a key with a passphrase", () => ({ TLS_KEY: file("locked.key", String(encrypted)) }), /^TLS_KEY: /],
    [
      "the key of another certificate",
      () => ({ TLS_KEY: file("other.key", testAuthority().issue().key) }),
      /^TLS_KEY: expected the path of a PEM file with the private key of TLS_CERT/,
    ],
  ])("refuses %s", (_name, env, message) => {
    const error = errorOf(env());
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain("\n");
  });
});
