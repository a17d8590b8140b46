import { execFileSync } from "node:child_process";
import { sign } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { VerificationEngine } from "../dist/algorithms/algorithm.js";
import { importVerificationKey, verify as verifyRequest } from "@countersign/http-message-signatures";
import { loadEngine } from "@countersign/http-message-signatures/door";
import { describe, expect, test } from "@jest/globals";
import { ed25519 } from "@noble/curves/ed25519.js";
import { bytesToNumberLE, numberToBytesLE } from "@noble/curves/utils.js";
import { verifyEd25519, verifyEd25519Async } from "../src/algorithms/ed25519.ts";
import { keyObjectOf, L, p, publicBytes, signWith, smallOrderEncodings, torsion, withS } from "./forgery.ts";
import { key, privateKey, signByHand, strict, verdictOf } from "./hand-signer.ts";
import { withFields } from "./hostile-rows.ts";

const message = Buffer.from("pay 10.00 EUR to DE89370400440532013000");
const good = sign(null, message, privateKey);
const r = 0x1234_5678_9abc_def0n;
const engines = ["native", "noble", "sodium"] as const;

describe.each(engines)("verifyEd25519 by %s", (engine) => {
  const verdict = (signature: Uint8Array, data: Uint8Array = message): boolean =>
    verifyEd25519(key.publicKey, data, signature, engine);

  test("accepts a signature of node:crypto, of noble, and one made by hand", () => {
    const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(16);
    const R = ed25519.Point.BASE.multiply(r).toBytes();
    expect(verdict(good)).toBe(true);
    expect(verdict(ed25519.sign(message, seed))).toBe(true);
    expect(verdict(signWith(R, r, message))).toBe(true);
    expect(verdict(sign(null, Buffer.alloc(0), privateKey), Buffer.alloc(0))).toBe(true);
  });

  test("refuses another message", () => {
    expect(verdict(good, Buffer.from("pay 99.00 EUR to DE89370400440532013000"))).toBe(false);
  });

  test.each([0, 32, 63, 65, 128])("refuses %i bytes", (length) => {
    expect(verdict(Buffer.concat([good, good]).subarray(0, length))).toBe(false);
  });

  test.each<[string, (s: bigint) => bigint]>([
    ["S + L", (s) => s + L],
    ["S + 2 L", (s) => s + 2n * L],
    ["S with the top bit", (s) => s + (1n << 255n)],
    ["S = L", () => L],
    ["S = 0", () => 0n],
    ["-S", (s) => L - s],
  ])("refuses %s", (_title, change) => {
    expect(verdict(withS(good, change))).toBe(false);
  });

  test.each(smallOrderEncodings)("refuses an R of small order, %s", (_name, hex) => {
    const R = Buffer.from(hex, "hex");
    // With S = k a the equation holds for R of order 1, and for all of them once it is multiplied by the cofactor.
    expect(verdict(signWith(R, 0n, message))).toBe(false);
  });

  test("refuses an R that is not canonical", () => {
    for (let y = p; y < 1n << 255n; y++) {
      for (const sign0 of [0n, 1n << 255n]) {
        expect(verdict(signWith(numberToBytesLE(y + sign0, 32), 0n, message))).toBe(false);
      }
    }
  });

  test("refuses an R with a torsion part, which solves the equation with the cofactor", () => {
    const mixed = torsion.slice(1).map((point) => ed25519.Point.BASE.multiply(r).add(point));
    expect(mixed).toHaveLength(7);
    for (const R of mixed) {
      const signature = signWith(R.toBytes(), r, message);
      expect(ed25519.verify(signature, message, publicBytes, { zip215: true })).toBe(true);
      expect(verdict(signature)).toBe(false);
    }
  });

  test("refuses an R that is no point", () => {
    const offCurve = Array.from({ length: 20 }, (_, y) => numberToBytesLE(BigInt(y + 2), 32)).filter(
      (bytes) => !isPoint(bytes),
    );
    expect(offCurve.length).toBeGreaterThan(5);
    for (const R of offCurve) expect(verdict(signWith(R, 0n, message))).toBe(false);
  });

  // Found by counting up: the first and the last byte agree with a point of small order or with a y beyond the field.
  test.each([148n, 1031n, 9115n, 36_055n, 55_399n, 66_559n])(
    "takes R = %i B, which only looks unsound",
    (n) => {
      expect(verdict(signWith(ed25519.Point.BASE.multiply(n).toBytes(), n, message))).toBe(true);
    },
  );
});

test("verifyEd25519Async has the verdicts of verifyEd25519", async () => {
  const mixed = torsion.map((point) => ed25519.Point.BASE.multiply(r).add(point).toBytes());
  const signatures = [
    good,
    good.subarray(1),
    Buffer.concat([good, good]),
    withS(good, (s) => s + L),
    withS(good, (s) => L - s),
    ...mixed.map((R) => signWith(R, r, message)),
    ...smallOrderEncodings.map(([, hex]) => signWith(Buffer.from(hex, "hex"), 0n, message)),
  ];
  const verdicts = await Promise.all(
    signatures.map((bytes) => verifyEd25519Async(key.publicKey, message, bytes)),
  );
  expect(verdicts).toEqual(signatures.map((bytes) => verifyEd25519(key.publicKey, message, bytes)));
  expect(verdicts.filter(Boolean)).toHaveLength(2);
});

test("verifyEd25519Async rejects when node:crypto gives no verdict", async () => {
  const publicKey = { type: "public" } as unknown as typeof key.publicKey;
  await expect(verifyEd25519Async(publicKey, message, good)).rejects.toThrow();
});

describe("public keys under which anybody can sign", () => {
  test.each(smallOrderEncodings)("are refused on import: %s", (_name, hex) => {
    const bytes = Buffer.from(hex, "hex");
    for (const form of [bytes.toString("base64"), keyObjectOf(bytes)]) {
      expect(() => importVerificationKey("k", form)).toThrow(TypeError);
    }
  });

  test("are refused on import when not canonical", () => {
    for (let y = p; y < 1n << 255n; y++) {
      for (const sign0 of [0n, 1n << 255n]) {
        const text = Buffer.from(numberToBytesLE(y + sign0, 32)).toString("base64");
        expect(() => importVerificationKey("k", text)).toThrow(/no canonical Ed25519 point/);
      }
    }
  });

  test("are refused on import when they have a torsion part", () => {
    const point = ed25519.Point.fromBytes(publicBytes);
    const mixed = torsion.slice(1).map((small) => point.add(small).toBytes());
    expect(mixed).toHaveLength(7);
    for (const bytes of mixed) {
      const text = Buffer.from(bytes).toString("base64");
      expect(() => importVerificationKey("k", text)).toThrow(/not of prime order/);
    }
  });

  test("are refused by verify() when a key store made the record itself", () => {
    const { base, input } = signByHand();
    const identity = keyObjectOf(Buffer.from(`01${"00".repeat(31)}`, "hex"));
    // S B = R + k A with A the identity: valid for every message.
    const R = ed25519.Point.BASE.multiply(r).toBytes();
    const forged = Buffer.concat([R, numberToBytesLE(r, 32)]);
    expect(ed25519.verify(forged, Buffer.from(base), identityBytes(), { zip215: true })).toBe(true);
    const request = withFields(input, `sig1=:${forged.toString("base64")}:`);
    const keys = () => ({ keyid: "test-key", alg: "ed25519", publicKey: identity }) as const;
    expect(verdictOf(() => verifyRequest(request, { ...strict, keys }))).toBe("key-mismatch");
  });
});

function identityBytes(): Uint8Array {
  return Buffer.from(`01${"00".repeat(31)}`, "hex");
}

function isPoint(bytes: Uint8Array): boolean {
  try {
    ed25519.Point.fromBytes(bytes);
    return true;
  } catch {
    return false;
  }
}

test("the test key is of prime order and its S is below L", () => {
  expect(ed25519.Point.fromBytes(publicBytes).isTorsionFree()).toBe(true);
  expect(bytesToNumberLE(good.subarray(32)) < L).toBe(true);
});

const index = fileURLToPath(new URL("../dist/door.js", import.meta.url));

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
