import { describe, expect, test } from "@jest/globals";
import { jwksKeys } from "@countersign/http-signature-verify";
import type { JwksKeysOptions } from "../dist/jwks-keys.js";

const url = "https://keys.example/jwks.json";

describe("jwksKeys", () => {
  test.each<[string, unknown, unknown]>([
    ["a URL of http", "http://keys.example/", {}],
    ["http beyond loopback, although allowed", "http://keys.example/", { allowHttpOnLoopback: true }],
    ["http on loopback, not allowed", "http://127.0.0.1/", {}],
    ["a host that looks like loopback", "http://127.0.0.1.example/", { allowHttpOnLoopback: true }],
    ["another scheme", "file:///etc/keys.json", {}],
    ["a password in the URL", "https://user:secret-word@keys.example/", {}],
    ["no URL", "keys.json", {}],
    ["nothing", undefined, {}],
    ["an unknown option", url, { ttl: 1 }],
    ["a ttl of nothing", url, { ttlSeconds: 0 }],
    ["bounds that exclude each other", url, { minTtlSeconds: 100, maxTtlSeconds: 10 }],
  ])("throws on %s", (_title, given, options) => {
    const make = (): unknown => jwksKeys(given as string, options as JwksKeysOptions);
    expect(make).toThrow(/^jwksKeys: /);
    expect(make).not.toThrow("secret-word");
  });
});
