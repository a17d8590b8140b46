import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  directoryKeys,
  type DirectoryKeysOptions,
  type LiveKeyStore,
} from "@countersign/http-signature-verify";
import { eventually, freshPem, hearNotices, serviceJwk, setOf } from "./live-keys-bench.ts";

let parent: string;
let directory: string;
let store: LiveKeyStore | undefined;
let notices: ReturnType<typeof hearNotices>;
beforeEach(() => {
  parent = mkdtempSync(path.join(tmpdir(), "countersign-keys-"));
  directory = path.join(parent, "keys");
  mkdirSync(directory);
  notices = hearNotices();
});
afterEach(() => {
  store?.close();
  store = undefined;
  notices.stop();
  rmSync(parent, { recursive: true });
});

const put = (name: string, content: string = freshPem()): void =>
  writeFileSync(path.join(directory, name), content);
const open = (options: DirectoryKeysOptions = {}, place = directory): LiveKeyStore => {
  // So long that polling is not what a test sees, unless it asks for it.
  store = directoryKeys(place, { pollSeconds: 3600, ...options });
  return store;
};
const keyids = (): Set<string> => new Set(store?.keys().map(({ keyid }) => keyid));
const until = (...expected: string[]): Promise<void> =>
  eventually(() => expect(keyids()).toEqual(new Set(expected)));
const untilTold = (text: RegExp): Promise<void> =>
  eventually(() => expect(notices.heard.map(({ error }) => String(error)).join("\n")).toMatch(text));

describe("directoryKeys", () => {
  test("reads PEM by the file's name, and JSON by what it says", async () => {
    put("a.pem");
    put("b.public.pem");
    put("c.pub", freshPem().split("\n")[1]);
    put("some.jwk", JSON.stringify({ ...serviceJwk, kid: "d" }));
    put("e.jwk", JSON.stringify(serviceJwk));
    put("set.jwks", JSON.stringify(setOf("f", "g")));
    put("keys.json", JSON.stringify({ h: freshPem(), __proto__x: freshPem() }));
    for (const ignored of ["README.md", ".hidden.pem", "a.pem~", "a.pem.swp", ".pem", "pem"])
      put(ignored, "-");
    mkdirSync(path.join(directory, "folder.pem"));
    await open().ready();
    expect(keyids()).toEqual(new Set(["__proto__x", "a", "b", "c", "d", "e", "f", "g", "h"]));
    expect(await store?.get("a")).toMatchObject({ keyid: "a" });
    expect(await store?.get("__proto__")).toBeUndefined();
  });

  test("reads a single file, and follows what replaces it", async () => {
    put("keys.json", JSON.stringify({ a: freshPem() }));
    await open({}, path.join(directory, "keys.json")).ready();
    expect(keyids()).toEqual(new Set(["a"]));
    put("next", JSON.stringify({ a: freshPem(), b: freshPem() }));
    renameSync(path.join(directory, "next"), path.join(directory, "keys.json"));
    await until("a", "b");
  });

  test("sees files that come, change and go, without being asked", async () => {
    put("a.pem");
    await open().ready();
    const before = await store?.get("a");
    put("b.pem");
    await until("a", "b");
    put("a.pem");
    await eventually(async () => expect(await store?.get("a")).not.toBe(before));
    unlinkSync(path.join(directory, "a.pem"));
    await until("b");
    expect(await store?.get("a")).toBeUndefined();
  });

  test("follows a mount of Kubernetes, whose ..data is exchanged", async () => {
    const mount = (name: string, ...files: string[]): void => {
      mkdirSync(path.join(directory, name));
      for (const file of files) put(path.join(name, file));
      symlinkSync(name, path.join(directory, "..next"));
      renameSync(path.join(directory, "..next"), path.join(directory, "..data"));
    };
    mount("..2026_01", "a.pem");
    symlinkSync(path.join("..data", "a.pem"), path.join(directory, "a.pem"));
    await open().ready();
    const before = await store?.get("a");
    mount("..2026_02", "a.pem");
    await eventually(async () => expect(await store?.get("a")).not.toBe(before));
    expect(keyids()).toEqual(new Set(["a"]));
  });

  test("never mixes two mounts, however often they are exchanged", async () => {
    for (const name of ["x.jwk", "y.jwk"]) symlinkSync(path.join("..data", name), path.join(directory, name));
    const exchange = (version: number): void => {
      const mount = path.join(directory, `..${version}`);
      mkdirSync(mount);
      for (const name of ["x", "y"]) {
        writeFileSync(
          path.join(mount, `${name}.jwk`),
          JSON.stringify({ ...serviceJwk, kid: `${name}${version}` }),
        );
      }
      symlinkSync(`..${version}`, path.join(directory, "..next"));
      renameSync(path.join(directory, "..next"), path.join(directory, "..data"));
    };
    exchange(0);
    await open().ready();
    const seen = new Set<string>();
    for (let version = 1; version <= 50; version += 1) {
      const reading = store?.refresh().catch(() => undefined);
      // Somewhere within the reading.
      for (let turn = 0; turn < version % 10; turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
      exchange(version);
      await reading;
      const versions = new Set([...keyids()].map((keyid) => keyid.slice(1)));
      expect([keyids().size, versions.size]).toEqual([2, 1]);
      for (const one of versions) seen.add(one);
    }
    expect(seen.size).toBeGreaterThan(1);
  });

  test("follows a directory that is a link and is exchanged", async () => {
    put("a.pem");
    const link = path.join(parent, "current");
    symlinkSync("keys", link);
    await open({}, link).ready();
    mkdirSync(path.join(parent, "other"));
    writeFileSync(path.join(parent, "other", "b.pem"), freshPem());
    symlinkSync("other", path.join(parent, "next"));
    renameSync(path.join(parent, "next"), link);
    await until("b");
  });

  test("keeps the last good set while a file is being written", async () => {
    put("a.pem");
    await open().ready();
    const pem = freshPem();
    put("b.pem", pem.slice(0, 40));
    await untilTold(/"b\.pem", keyid "b": /);
    expect(keyids()).toEqual(new Set(["a"]));
    appendFileSync(path.join(directory, "b.pem"), pem.slice(40));
    await until("a", "b");
  });

  test("keeps it while the directory is away, and takes the one that comes back", async () => {
    put("a.pem");
    await open().ready();
    rmSync(directory, { recursive: true });
    await untilTold(/ENOENT|no key file/);
    expect(await store?.get("a")).toMatchObject({ keyid: "a" });
    mkdirSync(directory);
    put("b.pem");
    await until("b");
    // It is watched, too.
    put("c.pem");
    await until("b", "c");
  });

  test("sees by polling what no watcher tells", async () => {
    put("a.pem");
    const moved = path.join(parent, "a", "b", "keys");
    mkdirSync(path.dirname(moved), { recursive: true });
    renameSync(directory, moved);
    await open({ pollSeconds: 1 }, moved).ready();
    // Nobody watches so far up.
    renameSync(path.join(parent, "a"), path.join(parent, "old"));
    mkdirSync(moved, { recursive: true });
    writeFileSync(path.join(moved, "b.pem"), freshPem());
    await until("b");
  });

  test("refuses to use a set for longer than its bound", async () => {
    let nowMs = 1000;
    put("a.pem");
    await open({ pollSeconds: 10, staleIfErrorSeconds: 60, now: () => nowMs }).ready();
    rmSync(path.join(directory, "a.pem"));
    nowMs += 79_000;
    expect(await store?.get("a")).toMatchObject({ keyid: "a" });
    nowMs += 2000;
    await expect(store?.get("a")).rejects.toThrow("the directory holds no key file");
  });

  const bad: [string, () => void, RegExp][] = [
    ["a private key", () => put("b.pem", privatePem()), /"b\.pem", keyid "b": .*private key.*openssl pkey/],
    [
      "a private key in a set",
      () => put("b.jwks", JSON.stringify(privateSet())),
      /"b\.jwks", keyid "b": .*private key/,
    ],
    [
      "a keyid in two files",
      () => put("b.jwk", JSON.stringify({ ...serviceJwk, kid: "a" })),
      /another file too/,
    ],
    ["a kid twice in a set", () => put("b.jwks", JSON.stringify(setOf("b", "b"))), /stands there twice/],
    [
      "a kid with control characters",
      () => put("b.jwks", JSON.stringify(setOf("b\u0000"))),
      /printable ASCII/,
    ],
    ["an empty file", () => put("b.pem", ""), /"b\.pem", keyid "b": /],
    ["an empty record", () => put("b.json", "{}"), /holds no key/],
    ["a huge file", () => put("b.pem", " ".repeat(2000)), /more than 1000 bytes/],
    ["too many keys", () => put("b.jwks", JSON.stringify(setOf("b", "c"))), /more than 2 keys/],
    ["too many files", () => ["b", "c", "d"].forEach((name) => put(`${name}.pem`)), /more than 2 key files/],
    ["a link to nowhere", () => symlinkSync("nowhere", path.join(directory, "b.pem")), /ENOENT/],
    ["a device", () => symlinkSync("/dev/zero", path.join(directory, "b.pem")), /it is no file/],
    [
      "a pipe",
      () => void execFileSync("sh", ["-c", 'mkfifo "$0"', path.join(directory, "b.pem")]),
      /it is no file/,
    ],
  ];
  test.each(bad)("does not begin with %s", async (_title, make, expected) => {
    put("a.pem");
    make();
    await expect(open({ maxKeys: 2, maxBytes: 1000 }).ready()).rejects.toThrow(expected);
    expect(notices.heard.map(({ code }) => code)).toEqual(["keys-not-refreshed"]);
  });

  test.each(bad)("keeps the last good set at %s", async (_title, make, expected) => {
    put("a.pem");
    await open({ maxKeys: 2, maxBytes: 1000 }).ready();
    make();
    await untilTold(expected);
    expect(keyids()).toEqual(new Set(["a"]));
  });

  test("close ends the watching", async () => {
    put("a.pem");
    await open().ready();
    store?.close();
    put("b.pem");
    await expect(store?.get("a")).rejects.toThrow("closed");
    expect(keyids()).toEqual(new Set(["a"]));
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

function privatePem(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function privateSet(): unknown {
  return { keys: [{ ...serviceJwk, kid: "b", d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A" }] };
}
