import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import type { DirectoryKeysOptions } from "../dist/directory-keys.js";
import { directoryKeys } from "@countersign/http-signature-verify";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { KeyFolder } from "./key-folder.ts";
import { countTurns, eventually, freshPem, largeSet, serviceJwk, setOf } from "./live-keys-bench.ts";

let at: KeyFolder;
beforeEach(() => {
  at = new KeyFolder();
});
afterEach(() => at.close());

describe("directoryKeys", () => {
  test("reads PEM by the file's name, and JSON by what it says", async () => {
    at.put("a.pem");
    at.put("b.public.pem");
    at.put("c.pub", freshPem().split("\n")[1]);
    at.put("some.jwk", JSON.stringify({ ...serviceJwk, kid: "d" }));
    at.put("e.jwk", JSON.stringify(serviceJwk));
    at.put("set.jwks", JSON.stringify(setOf("f", "g")));
    at.put("keys.json", JSON.stringify({ h: freshPem(), __proto__x: freshPem() }));
    for (const ignored of ["README.md", ".hidden.pem", "a.pem~", "a.pem.swp", ".pem", "pem"])
      at.put(ignored, "-");
    mkdirSync(path.join(at.directory, "folder.pem"));
    await at.open().ready();
    expect(at.keyids()).toEqual(new Set(["__proto__x", "a", "b", "c", "d", "e", "f", "g", "h"]));
    expect(await at.store?.get("a")).toMatchObject({ keyid: "a" });
    expect(await at.store?.get("__proto__")).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ["set", largeSet],
    ["record", Object.fromEntries(largeSet.keys.map((jwk, index) => [`key-${index}`, jwk]))],
  ])("reads a large %s in several turns of the event loop", async (_name, document) => {
    const turns = countTurns();
    at.put("keys.json", JSON.stringify(document));
    await at.open({ validity: turns.validity }).ready();
    expect(turns.end()).toBeGreaterThan(1);
    expect(at.keyids().size).toBe(largeSet.keys.length);
  });

  test("uses the keys of a set that has keys for others too, and tells of these", async () => {
    const forOthers = [
      { ...serviceJwk, kid: "a", use: "enc" },
      { kty: "AKP", kid: "b" },
    ];
    at.put("set.jwks", JSON.stringify({ keys: [...forOthers, ...setOf("a").keys] }));
    await at.open().ready();
    expect(at.keyids()).toEqual(new Set(["a"]));
    expect(at.notices.heard.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['the key "a" is left out', 'the key "b" is left out']),
    );
  });

  test("rejects a set that has nothing but keys for others", async () => {
    at.put("set.jwks", JSON.stringify({ keys: [{ ...serviceJwk, kid: "a", use: "enc" }] }));
    await expect(at.open().ready()).rejects.toThrow(/"set\.jwks", keyid "a": .*another use than sig/);
  });

  test("reads a single file, and follows what replaces it", async () => {
    at.put("keys.json", JSON.stringify({ a: freshPem() }));
    await at.open({}, path.join(at.directory, "keys.json")).ready();
    expect(at.keyids()).toEqual(new Set(["a"]));
    at.put("next", JSON.stringify({ a: freshPem(), b: freshPem() }));
    renameSync(path.join(at.directory, "next"), path.join(at.directory, "keys.json"));
    await at.until("a", "b");
  });

  test("sees files that come, change and go, without being asked", async () => {
    at.put("a.pem");
    await at.open().ready();
    const before = await at.store?.get("a");
    at.put("b.pem");
    await at.until("a", "b");
    at.put("a.pem");
    await eventually(async () => expect(await at.store?.get("a")).not.toBe(before));
    unlinkSync(path.join(at.directory, "a.pem"));
    await at.until("b");
    expect(await at.store?.get("a")).toBeUndefined();
  });

  test("follows a mount of Kubernetes, whose ..data is exchanged", async () => {
    const mount = (name: string, ...files: string[]): void => {
      mkdirSync(path.join(at.directory, name));
      for (const file of files) at.put(path.join(name, file));
      symlinkSync(name, path.join(at.directory, "..next"));
      renameSync(path.join(at.directory, "..next"), path.join(at.directory, "..data"));
    };
    mount("..2026_01", "a.pem");
    symlinkSync(path.join("..data", "a.pem"), path.join(at.directory, "a.pem"));
    await at.open().ready();
    const before = await at.store?.get("a");
    mount("..2026_02", "a.pem");
    await eventually(async () => expect(await at.store?.get("a")).not.toBe(before));
    expect(at.keyids()).toEqual(new Set(["a"]));
  });

  test("never mixes two mounts, however often they are exchanged", async () => {
    for (const name of ["x.jwk", "y.jwk"])
      symlinkSync(path.join("..data", name), path.join(at.directory, name));
    const exchange = (version: number): void => {
      const mount = path.join(at.directory, `..${version}`);
      mkdirSync(mount);
      for (const name of ["x", "y"]) {
        writeFileSync(
          path.join(mount, `${name}.jwk`),
          JSON.stringify({ ...serviceJwk, kid: `${name}${version}` }),
        );
      }
      symlinkSync(`..${version}`, path.join(at.directory, "..next"));
      renameSync(path.join(at.directory, "..next"), path.join(at.directory, "..data"));
    };
    exchange(0);
    await at.open().ready();
    const seen = new Set<string>();
    for (let version = 1; version <= 50; version += 1) {
      const reading = at.store?.refresh().catch(() => undefined);
      // Somewhere within the reading.
      for (let turn = 0; turn < version % 10; turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
      exchange(version);
      await reading;
      const versions = new Set([...at.keyids()].map((keyid) => keyid.slice(1)));
      expect([at.keyids().size, versions.size]).toEqual([2, 1]);
      for (const one of versions) seen.add(one);
    }
    expect(seen.size).toBeGreaterThan(1);
  });

  test("follows a directory that is a link and is exchanged", async () => {
    at.put("a.pem");
    const link = path.join(at.parent, "current");
    symlinkSync("keys", link);
    await at.open({}, link).ready();
    mkdirSync(path.join(at.parent, "other"));
    writeFileSync(path.join(at.parent, "other", "b.pem"), freshPem());
    symlinkSync("other", path.join(at.parent, "next"));
    renameSync(path.join(at.parent, "next"), link);
    await at.until("b");
  });

  test("keeps the last good set while a file is being written", async () => {
    at.put("a.pem");
    await at.open().ready();
    const pem = freshPem();
    at.put("b.pem", pem.slice(0, 40));
    await at.untilTold(/"b\.pem", keyid "b": /);
    expect(at.keyids()).toEqual(new Set(["a"]));
    appendFileSync(path.join(at.directory, "b.pem"), pem.slice(40));
    await at.until("a", "b");
  });

  test("keeps it while the directory is away, and takes the one that comes back", async () => {
    at.put("a.pem");
    await at.open().ready();
    rmSync(at.directory, { recursive: true });
    await at.untilTold(/ENOENT|no key file/);
    expect(await at.store?.get("a")).toMatchObject({ keyid: "a" });
    mkdirSync(at.directory);
    at.put("b.pem");
    await at.until("b");
    // It is watched, too.
    at.put("c.pem");
    await at.until("b", "c");
  });

  test("sees by polling what no watcher tells", async () => {
    at.put("a.pem");
    const moved = path.join(at.parent, "a", "b", "keys");
    mkdirSync(path.dirname(moved), { recursive: true });
    renameSync(at.directory, moved);
    await at.open({ pollSeconds: 1 }, moved).ready();
    // Nobody watches so far up.
    renameSync(path.join(at.parent, "a"), path.join(at.parent, "old"));
    mkdirSync(moved, { recursive: true });
    writeFileSync(path.join(moved, "b.pem"), freshPem());
    await at.until("b");
  });

  test("refuses to use a set for longer than its bound", async () => {
    let nowMs = 1000;
    at.put("a.pem");
    await at.open({ pollSeconds: 10, staleIfErrorSeconds: 60, now: () => nowMs }).ready();
    rmSync(path.join(at.directory, "a.pem"));
    nowMs += 79_000;
    expect(await at.store?.get("a")).toMatchObject({ keyid: "a" });
    nowMs += 2000;
    await expect(at.store?.get("a")).rejects.toThrow("the directory holds no key file");
  });

  test("close ends the watching", async () => {
    at.put("a.pem");
    await at.open().ready();
    at.store?.close();
    at.put("b.pem");
    await expect(at.store?.get("a")).rejects.toThrow("closed");
    expect(at.keyids()).toEqual(new Set(["a"]));
  });

  test.each<[string, unknown, unknown]>([
    ["no path", undefined, {}],
    ["an empty path", "", {}],
    ["a path with a NUL", "a\0b", {}],
    ["an unknown option", ".", { poll: 1 }],
    ["an interval of nothing", ".", { pollSeconds: 0 }],
  ])("throws on %s", (_title, place, options) => {
    expect(() => directoryKeys(place as string, options as DirectoryKeysOptions)).toThrow(/^directoryKeys: /);
  });
});

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
    ["a kid twice in a set", () => at.put("b.jwks", JSON.stringify(setOf("b", "b"))), /2 of 2 keys that fit/],
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
