import { describe, expect, test } from "@jest/globals";
import { contentDigest } from "@countersign/content-digest";

describe("contentDigest as built", () => {
  test.each<[string, string, unknown]>([
    ["no algorithms", "algorithms", []],
    ["an unknown algorithm", "algorithms", ["sha-256", "md5"]],
    ["an algorithm in upper case", "algorithms", ["SHA-256"]],
    ["an algorithm twice", "algorithms", ["sha-256", "sha-256"]],
    ["one algorithm without an array", "algorithms", "sha-256"],
    ["a name that every object has", "algorithms", ["constructor"]],
    ["a word for required", "required", "yes"],
    ["a limit of nothing", "limit", 0],
    ["a limit in words", "limit", "unlimited"],
    ["a status that is a success", "status", 200],
    ["a status of ours", "status", 500],
  ])("throws on %s", (_name, option, value) => {
    expect(() => contentDigest({ [option]: value })).toThrow(
      new RegExp(`^contentDigest: option ${option} must be`),
    );
    expect(() => contentDigest({ [option]: value })).toThrow(
      expect.objectContaining({ name: "TypeError", factory: "contentDigest", option }),
    );
  });

  test("throws on an unknown option", () => {
    expect(() => contentDigest({ algorithm: "sha-256" } as object)).toThrow(/unknown option algorithm;/);
  });

  test("returns a middleware that stack traces name", () => {
    expect(contentDigest().name).toBe("contentDigestMiddleware");
  });
});
