import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { afterEach, expect, test } from "@jest/globals";
import { jwksKeys, keyUse, type LiveKeyStore } from "@countersign/http-signature-verify";
import type { KeyUseTable } from "../dist/key-use.js";
import { signRequest } from "@countersign/test-support/signers/independent-signer.ts";
import { answer } from "./live-keys-bench.ts";
import { startPlatform, type Platform } from "./platform.ts";

interface Signer {
  readonly keyid: string;
  readonly key: KeyObject;
  readonly jwk: object;
}

function makeSigner(keyid: string): Signer {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { keyid, key: privateKey, jwk: { ...publicKey.export({ format: "jwk" }), kid: keyid } };
}

let platform: Platform;
let store: LiveKeyStore;
let uses: KeyUseTable;
afterEach(async () => {
  uses.close();
  store.close();
  await platform.close();
});

test("one key of a JWK Set follows another under traffic, and no request is refused", async () => {
  const [old, next] = [makeSigner("old"), makeSigner("next")];
  let published = [old];
  let nowMs = 1000;
  store = jwksKeys("https://keys.example/jwks.json", {
    fetch: async () => answer({ keys: published.map(({ jwk }) => jwk) }),
    now: () => nowMs,
  });
  uses = keyUse();
  platform = await startPlatform(undefined, { keys: store });
  const send = async ({ keyid, key }: Signer): Promise<number> =>
    (await platform.send(signRequest({ keyid, key }))).status;
  const burst = (...signers: readonly Signer[]): Promise<number[]> =>
    Promise.all(Array.from({ length: 10 }, () => signers.map(send)).flat());

  const answers = await burst(old);
  // Known by the first signature of it, once the cool-down is over.
  published = [old, next];
  nowMs += 30_000;
  answers.push(...(await burst(old, next)));
  answers.push(...(await burst(next)));
  // The old one is idle, and goes when the time of the set is over.
  published = [next];
  nowMs += 300_000;
  answers.push(...(await burst(next)));
  expect(new Set(answers)).toEqual(new Set([200]));
  expect(uses.entries()).toMatchObject([
    { keyid: "next", count: 30 },
    { keyid: "old", count: 20 },
  ]);
  expect(await send(old)).toBe(401);
  expect(platform.codes).toEqual(["key-unknown"]);
});
