import { execFileSync, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "@jest/globals";
import { served } from "@countersign/test-support/servers/served.ts";
import type { Environment } from "../src/environment.ts";
import { openKeys, readKeySource } from "../src/keys.ts";
import { SettingError } from "../src/setting-error.ts";
import { file, folder } from "./setting-files.ts";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const jwk = publicKey.export({ format: "jwk" });
const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
const der = publicKey.export({ format: "der", type: "spki" });
const privatePem = privateKey.export({ format: "pem", type: "pkcs8" }).toString();

/** Which of some keyids PAYOUT_KEYS has a key for. */
async function keyidsOf(value: string, env: Environment = {}): Promise<string[]> {
  const opened = await openKeys(readKeySource({ ...env, PAYOUT_KEYS: value }));
  try {
    if (typeof opened.keys === "function" || !("get" in opened.keys)) throw new Error("no store");
    const { keys } = opened;
    const candidates = ["a", "b", "escaped", "spki", "base64url", "text", "set", "raw", "jwk"];
    const found = await Promise.all(
      candidates.map(async (keyid) => (keys as Map<string, unknown>).get(keyid)),
    );
    return candidates.filter((_keyid, index) => found[index] !== undefined);
  } finally {
    opened.close();
  }
}

async function errorOf(value: string | undefined, env: Environment = {}): Promise<SettingError> {
  try {
    const { close } = await openKeys(readKeySource({ ...env, PAYOUT_KEYS: value }));
    close();
  } catch (error) {
    if (error instanceof SettingError) return error;
    throw error;
  }
  throw new Error("the keys were accepted");
}

describe("PAYOUT_KEYS", () => {
  test("takes what environment variables and other tools make of a key", async () => {
    const forms = {
      escaped: pem.replaceAll("\n", "\\n"),
      spki: der.toString("base64"),
      base64url: der.subarray(12).toString("base64url"),
      text: JSON.stringify(jwk),
      set: { keys: [jwk] },
      raw: der.subarray(12).toString("base64"),
      jwk,
    };
    expect(await keyidsOf(file("forms.json", forms))).toEqual(Object.keys(forms));
  });

  test("takes a JWK Set, a JWK, a PEM, a directory, and JSON itself", async () => {
    const set = {
      keys: [
        { ...jwk, kid: "a" },
        { ...jwk, kid: "b" },
      ],
    };
    expect(await keyidsOf(file("set.json", set))).toEqual(["a", "b"]);
    expect(await keyidsOf(file("b.jwk", jwk))).toEqual(["b"]);
    expect(await keyidsOf(file("a.pem", pem))).toEqual(["a"]);
    expect(await keyidsOf(JSON.stringify(set))).toEqual(["a", "b"]);
    expect(await keyidsOf(` ${JSON.stringify({ a: pem })}`)).toEqual(["a"]);
    mkdirSync(path.join(folder, "keys"));
    file("keys/a.pem", pem);
    file("keys/b.pem", pem);
    expect(await keyidsOf(path.join(folder, "keys"))).toEqual(["a", "b"]);
  });

  test("takes a pipe, once", async () => {
    const pipe = path.join(folder, "pipe");
    execFileSync("sh", ["-c", 'mkfifo "$0"', pipe]);
    const writer = spawn("sh", ["-c", 'printf %s "$1" > "$0"', pipe, JSON.stringify({ a: pem })]);
    expect(await keyidsOf(pipe)).toEqual(["a"]);
    if (writer.exitCode === null) await once(writer, "exit");
  });

  test("takes a URL, of http on loopback alone", async () => {
    const origin = await served((_req, res) => {
      res.setHeader("Content-Type", "application/json");
      res.end(JSON.stringify({ keys: [{ ...jwk, kid: "a" }] }));
    });
    const url = `${origin}/jwks`;
    expect(await keyidsOf(url)).toEqual(["a"]);
    expect((await errorOf(url, { NODE_ENV: "production" })).message).toMatch(/http is for work on loopback/);
  });

  test.each<[string, () => string | undefined, RegExp]>([
    ["nothing", () => undefined, /got nothing; .*countersign -- keygen/],
    ["an empty text", () => "", /countersign -- keygen/],
    ["no file", () => "/nowhere/keys.json", /ENOENT/],
    ["a folder without keys", () => tmpdirWithout(), /holds no key file/],
    ["a device", () => "/dev/zero", /it is no file/],
    ["a broken file", () => file("broken.pem", "-----BEGIN PUBLIC KEY-----"), /"broken\.pem"/],
    ["a list", () => file("list.json", [jwk]), /is a list/],
    ["no key", () => file("none.json", {}), /holds no key/],
    ["an empty set", () => file("empty.json", { keys: [] }), /hold no key/],
    ["an empty set in the variable", () => '{"keys":[]}', /holds no key/],
    ["a word", () => file("word.json", { k: "secret-text" }), /keyid "k"/],
    ["a word in the variable", () => '{"k":"secret-text"}', /keyid "k"/],
    ["broken JSON in the variable", () => '{"k":"secret-text"', /cannot be parsed/],
    ["a number", () => file("number.json", { k: 1 }), /keyid "k"/],
    ["an RSA JWK", () => file("rsa.json", { k: { kty: "RSA", n: "AQAB", e: "AQAB" } }), /keyid "k"/],
    ["a private key", () => file("private.json", { k: privatePem }), /keyid "k".*private key.*openssl pkey/],
    [
      "a key of small order",
      () => file("small.json", { k: Buffer.alloc(32).toString("base64") }),
      /keyid "k"/,
    ],
    ["http elsewhere", () => "http://keys.example/secret-text", /http is for work on loopback/],
    ["a URL with a password", () => "https://user:secret-text@keys.example/", /without user name/],
    ["no URL", () => "https://", /this is no URL/],
    ["a server that is not there", () => "http://127.0.0.1:1/secret-text", /fetch failed|bad port/],
  ])("refuses %s", async (_title, make, message) => {
    const error = await errorOf(make());
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^PAYOUT_KEYS: expected /);
    expect(error.message).not.toMatch(/\n|secret-text/);
  });
});

function tmpdirWithout(): string {
  const empty = path.join(folder, "empty");
  mkdirSync(empty, { recursive: true });
  return empty;
}
