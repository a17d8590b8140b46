import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { symlinkSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { KeyFolder } from "./key-folder.ts";
import { serviceJwk, setOf } from "./live-keys-bench.ts";

let at: KeyFolder;
beforeEach(() => {
  at = new KeyFolder();
});
afterEach(() => at.close());

describe("directoryKeys and bad files", () => {
  const bad: [string, () => void, RegExp][] = [
    [
      "a private key",
      () => at.put("b.pem", privatePem()),
      /"b\.pem", keyid "b": .*private key.*openssl pkey/,
    ],
    [
      "a private key in a set",
      () => at.put("b.jwks", JSON.stringify(privateSet())),
      /"b\.jwks", keyid "b": .*private key/,
    ],
    [
      "a keyid in two files",
      () => at.put("b.jwk", JSON.stringify({ ...serviceJwk, kid: "a" })),
      /another file too/,
    ],
    ["a kid twice in a set", () => at.put("b.jwks", JSON.stringify(setOf("b", "b"))), /stands there twice/],
    [
      "a kid with control characters",
      () => at.put("b.jwks", JSON.stringify(setOf("b\u0000"))),
      /printable ASCII/,
    ],
    ["an empty file", () => at.put("b.pem", ""), /"b\.pem", keyid "b": /],
    ["an empty record", () => at.put("b.json", "{}"), /holds no key/],
    ["a huge file", () => at.put("b.pem", " ".repeat(2000)), /more than 1000 bytes/],
    ["too many keys", () => at.put("b.jwks", JSON.stringify(setOf("b", "c"))), /more than 2 keys/],
    [
      "too many files",
      () => ["b", "c", "d"].forEach((name) => at.put(`${name}.pem`)),
      /more than 2 key files/,
    ],
    ["a link to nowhere", () => symlinkSync("nowhere", path.join(at.directory, "b.pem")), /ENOENT/],
    ["a device", () => symlinkSync("/dev/zero", path.join(at.directory, "b.pem")), /it is no file/],
    [
      "a pipe",
      () => void execFileSync("sh", ["-c", 'mkfifo "$0"', path.join(at.directory, "b.pem")]),
      /it is no file/,
    ],
  ];
  test.each(bad)("does not begin with %s", async (_title, make, expected) => {
    at.put("a.pem");
    make();
    await expect(at.open({ maxKeys: 2, maxBytes: 1000 }).ready()).rejects.toThrow(expected);
    expect(at.notices.heard.map(({ code }) => code)).toEqual(["keys-not-refreshed"]);
  });

  test.each(bad)("keeps the last good set at %s", async (_title, make, expected) => {
    at.put("a.pem");
    await at.open({ maxKeys: 2, maxBytes: 1000 }).ready();
    make();
    await at.untilTold(expected);
    expect(at.keyids()).toEqual(new Set(["a"]));
  });
});

function privatePem(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function privateSet(): unknown {
  return { keys: [{ ...serviceJwk, kid: "b", d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A" }] };
}
