import { createHash } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { createContentDigest, wantContentDigest } from "@countersign/content-digest";
import type { DigestAlgorithm } from "../dist/options.js";

describe("createContentDigest", () => {
  test.each<DigestAlgorithm>(["sha-256", "sha-512"])("agrees with node:crypto on %s", (algorithm) => {
    const bytes = Buffer.from([0, 255, 10, 13]);
    const base64 = createHash(algorithm.replace("-", "")).update(bytes).digest("base64");
    expect(createContentDigest(bytes, algorithm)).toBe(`${algorithm}=:${base64}:`);
  });

  test("uses sha-256 by default and takes any view of bytes", () => {
    expect(createContentDigest(new Uint8Array())).toBe(
      "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
    );
  });

  test.each<[string, unknown, unknown]>([
    ["a string", "{}", "sha-256"],
    ["nothing", undefined, "sha-256"],
    ["an unknown algorithm", Buffer.from("{}"), "md5"],
  ])("throws on %s", (_name, bytes, algorithm) => {
    expect(() => createContentDigest(bytes as Uint8Array, algorithm as DigestAlgorithm)).toThrow(TypeError);
  });
});

describe("wantContentDigest", () => {
  test.each<[string, DigestAlgorithm[]]>([
    ["sha-256=10", ["sha-256"]],
    ["sha-512=10, sha-256=9", ["sha-512", "sha-256"]],
  ])("asks for %s", (fieldValue, algorithms) => {
    expect(wantContentDigest(algorithms)).toBe(fieldValue);
  });
});
