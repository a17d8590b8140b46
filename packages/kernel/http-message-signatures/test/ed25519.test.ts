import { execFileSync } from "node:child_process";
import { sign } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { VerificationEngine } from "../dist/algorithms/algorithm.js";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { loadEngine } from "@countersign/http-message-signatures/internal";
import { describe, expect, test } from "@jest/globals";
import { ed25519 } from "@noble/curves/ed25519.js";
import { numberToBytesLE } from "@noble/curves/utils.js";
import { verifyEd25519, verifyEd25519Async } from "../src/algorithms/ed25519.ts";
import { p, signWith } from "./forgery.ts";
import { key, privateKey } from "./hand-signer.ts";

const message = Buffer.from("pay 10.00 EUR to DE89370400440532013000");
const good = sign(null, message, privateKey);

// What is refused of signatures of the right length, and of keys, is in test/vectors: unsound-signatures.json, refused-keys.json.
describe.each(["native", "noble", "sodium"] as const)("verifyEd25519 by %s", (engine) => {
  test.each([0, 32, 63, 65, 128])("refuses %i bytes", (length) => {
    const signature = Buffer.concat([good, good]).subarray(0, length);
    expect(verifyEd25519(key.publicKey, message, signature, engine)).toBe(false);
  });

  // Found by counting up: the first and the last byte agree with a point of small order or with a y beyond the field.
  test.each([148n, 1031n, 9115n, 36_055n, 55_399n, 66_559n])(
    "takes R = %i B, which only looks unsound",
    (n) => {
      const signature = signWith(ed25519.Point.BASE.multiply(n).toBytes(), n, message);
      expect(verifyEd25519(key.publicKey, message, signature, engine)).toBe(true);
    },
  );
});

test("a public key that is not canonical is refused on import", () => {
  for (let y = p; y < 1n << 255n; y++) {
    for (const sign0 of [0n, 1n << 255n]) {
      const text = Buffer.from(numberToBytesLE(y + sign0, 32)).toString("base64");
      expect(() => importVerificationKey("k", text)).toThrow(/no canonical Ed25519 point/);
    }
  }
});

test("verifyEd25519Async rejects when node:crypto gives no verdict", async () => {
  const publicKey = { type: "public" } as unknown as typeof key.publicKey;
  await expect(verifyEd25519Async(publicKey, message, good)).rejects.toThrow();
});

const index = fileURLToPath(new URL("../dist/internal.js", import.meta.url));

/** What `script` writes in a process in which sodium-native is not installed. */
function withoutSodium(script: string): string {
  const hidden = `
    const Module = require("node:module");
    const resolve = Module._resolveFilename;
    Module._resolveFilename = (name, ...rest) => {
      if (name === "sodium-native") throw Object.assign(new Error("not found"), { code: "MODULE_NOT_FOUND" });
      return Reflect.apply(resolve, Module, [name, ...rest]);
    };
    import(${JSON.stringify(index)}).then((engine) => { ${script} });`;
  return execFileSync(process.execPath, ["-e", hidden], { encoding: "utf8" });
}

test.each<VerificationEngine>(["native", "noble", "sodium"])("loads %s", (engine) => {
  expect(() => loadEngine(engine)).not.toThrow();
});

test("refuses another engine", () => {
  expect(() => loadEngine("openssl" as VerificationEngine)).toThrow(TypeError);
});

test("says what to install where sodium-native is not, and needs it for nothing else", () => {
  const script = `
    engine.loadEngine("native");
    engine.loadEngine("noble");
    try { engine.loadEngine("sodium"); } catch (error) { console.log(error.name, error.message); }`;
  expect(withoutSodium(script)).toMatch(/^TypeError .*npm install sodium-native/);
});
