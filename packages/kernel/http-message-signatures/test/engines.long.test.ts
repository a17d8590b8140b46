import { generateKeyPairSync, randomBytes, randomInt, sign, type KeyObject } from "node:crypto";
import process from "node:process";
import { expect, test } from "@jest/globals";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { rawPublicKey, verifyEd25519 } from "../src/algorithms/ed25519.ts";
import { smallOrderEncodings, torsion, withS, L } from "./forgery.ts";

// A million takes two minutes: ENGINE_MUTATIONS=1000000.
const mutations = Number(process.env["ENGINE_MUTATIONS"] ?? 100_000);
// noble takes as long for one as the others do for ten.
const nobleEvery = 50;
const newKeyEvery = 200;

interface Signed {
  readonly key: KeyObject;
  readonly message: Buffer;
  readonly signature: Buffer;
}

function newSigned(): Signed {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const message = randomBytes(randomInt(0, 400));
  return { key: vetted(publicKey), message, signature: sign(null, message, privateKey) };
}

/** As a key comes to a verifier: never without {@link importVerificationKey}. */
function vetted(key: KeyObject | Buffer): KeyObject {
  return importVerificationKey("k", Buffer.isBuffer(key) ? key.toString("base64") : key).publicKey;
}

function flipped(bytes: Buffer): Buffer {
  if (bytes.length === 0) return Buffer.from([randomInt(256)]);
  const changed = Buffer.from(bytes);
  const at = randomInt(bytes.length);
  changed.writeUInt8(changed.readUInt8(at) ^ (1 << randomInt(8)), at);
  return changed;
}

/** Another key whose bytes differ in one bit, where import takes one. */
function otherKey(key: KeyObject): KeyObject {
  for (let tried = 0; tried < 20; tried++) {
    try {
      return vetted(flipped(Buffer.from(rawPublicKey(key))));
    } catch {
      // No point, or not of prime order: nobody can verify under it.
    }
  }
  return key;
}

function withR(signature: Buffer, R: Uint8Array): Buffer {
  return Buffer.concat([R, signature.subarray(32)]);
}

const changes: readonly ((signed: Signed) => Signed)[] = [
  (signed) => ({ ...signed, signature: flipped(signed.signature) }),
  (signed) => ({ ...signed, signature: flipped(flipped(signed.signature)) }),
  (signed) => ({ ...signed, message: flipped(signed.message) }),
  (signed) => ({ ...signed, signature: randomBytes(64) }),
  (signed) => ({ ...signed, signature: withS(signed.signature, (s) => (s + L) % (1n << 256n)) }),
  (signed) => ({ ...signed, signature: withR(signed.signature, pick(smallOrder)) }),
  (signed) => ({ ...signed, signature: withR(signed.signature, pick(torsion).toBytes()) }),
  (signed) => ({ ...signed, signature: signed.signature.subarray(randomInt(64)) }),
  (signed) => signed,
];

const smallOrder: readonly Buffer[] = smallOrderEncodings.map(([, hex]) => Buffer.from(hex, "hex"));

function pick<T>(list: readonly T[]): T {
  const picked = list[randomInt(list.length)];
  if (picked === undefined) throw new Error("nothing to pick from");
  return picked;
}

test(`${mutations} mutations of signatures, keys and messages have one verdict in every engine`, () => {
  const differing: string[] = [];
  let [signed, accepted] = [newSigned(), 0];
  for (let count = 0; count < mutations; count++) {
    if (count % newKeyEvery === 0) signed = newSigned();
    const { key, message, signature } =
      count % newKeyEvery === 1 ? { ...signed, key: otherKey(signed.key) } : pick(changes)(signed);
    const native = verifyEd25519(key, message, signature, "native");
    const sodium = verifyEd25519(key, message, signature, "sodium");
    const noble = count % nobleEvery === 0 ? verifyEd25519(key, message, signature, "noble") : native;
    if (native) accepted += 1;
    if (native !== sodium || native !== noble) {
      differing.push(
        [rawPublicKey(key), message, signature].map((each) => Buffer.from(each).toString("hex")).join(" "),
      );
    }
  }
  expect(differing).toEqual([]);
  // What was not changed.
  expect(accepted / mutations).toBeGreaterThan(0.05);
  expect(accepted / mutations).toBeLessThan(0.2);
}, 600_000);
