import { describe, expect, test } from "@jest/globals";
import {
  createContentDigest,
  hasVerifiedContentDigest,
  verifyContentDigest,
  wantContentDigest,
} from "@countersign/content-digest";
import type { DigestAlgorithm } from "../dist/options.js";
import { refusalOf, requestOf } from "./harness.ts";

const body = Buffer.from('{ "amount" : 10.10 }');
const both: readonly DigestAlgorithm[] = ["sha-256", "sha-512"];
const sha256 = createContentDigest(body, "sha-256");
const sha512 = createContentDigest(body, "sha-512");
const otherSha256 = createContentDigest(Buffer.from("other"), "sha-256");
const otherSha512 = createContentDigest(Buffer.from("other"), "sha-512");
const base64 = sha256.slice("sha-256=:".length, -1);

describe("verifyContentDigest", () => {
  test.each<[string, string[], readonly DigestAlgorithm[]]>([
    ["a right sha-256", [sha256], both],
    ["a right sha-512", [sha512], both],
    ["both right", [`${sha512}, ${sha256}`], both],
    ["both right on two lines", [sha256, sha512], both],
    ["both right without white space", [`${sha512},${sha256}`], both],
    ["an unknown member beside a right one", [`sha3=:AAAA:, ${sha256}`], both],
    ["a deprecated member beside a right one", [`md5=:AAAA:, ${sha256}`], both],
    ["the one accepted algorithm beside another", [`${sha512}, ${sha256}`], ["sha-512"]],
  ])("accepts %s", (_name, lines, algorithms) => {
    const req = requestOf(lines);
    expect(hasVerifiedContentDigest(req)).toBe(false);
    verifyContentDigest(req, body, { algorithms, required: true });
    expect(hasVerifiedContentDigest(req)).toBe(true);
  });

  test.each<[string, string, string[], readonly DigestAlgorithm[]]>([
    ["no field", "missing", [], both],
    ["an empty field", "missing", [""], both],
    ["two empty lines", "invalid", ["", ""], both],
    ["a wrong sha-256", "mismatch", [otherSha256], both],
    ["a wrong sha-512", "mismatch", [otherSha512], both],
    ["a right and a wrong one", "mismatch", [`${sha256}, ${otherSha512}`], both],
    ["a wrong and a right one", "mismatch", [`${otherSha256}, ${sha512}`], both],
    ["a wrong one that is not asked for", "mismatch", [`${sha256}, ${otherSha512}`], ["sha-256"]],
    ["an algorithm that is not asked for", "unsupported", [sha512], ["sha-256"]],
    ["an unknown algorithm alone", "unsupported", ["sha3=:AAAA:"], both],
    ["deprecated algorithms alone", "unsupported", ["md5=:AAAA:, sha=:AAAA:, unixsum=:AAAA:"], both],
    ["a name that every object has", "unsupported", [`constructor=:${base64}:`], both],
    ["a repeated member", "invalid", [`${sha256}, ${sha256}`], both],
    ["a repeated member on two lines", "invalid", [otherSha256, sha256], both],
    ["parameters", "invalid", [`${sha256};a=1`], both],
    ["an upper-case name", "invalid", [`SHA-256=:${base64}:`], both],
    ["a String", "invalid", [`sha-256="${base64}"`], both],
    ["a Token", "invalid", [`sha-256=${base64.replaceAll("=", "")}`], both],
    ["a list", "invalid", [`sha-256=(:${base64}:)`], both],
    ["a bare key", "invalid", ["sha-256"], both],
    ["an empty byte sequence", "invalid", ["sha-256=::"], both],
    ["a digest that is too short", "invalid", ["sha-256=:AAAA:"], both],
    ["a digest of the other length", "invalid", [sha512.replace("sha-512", "sha-256")], both],
    ["a wrong length beside a right digest", "invalid", [`${sha256}, sha-512=:AAAA:`], both],
    ["missing padding", "invalid", [`sha-256=:${base64.replace("=", "")}:`], both],
    ["too much padding", "invalid", [`sha-256=:${base64}=:`], both],
    ["base64url", "invalid", [`sha-256=:${"-".repeat(43)}=:`], both],
    ["altered pad bits", "invalid", [`sha-256=:${"A".repeat(42)}B=:`], both],
    ["white space in the base64", "invalid", [`sha-256=: ${base64}:`], both],
    ["a comma at the end", "invalid", [`${sha256},`], both],
    ["more than four members", "invalid", [`a=:AA==:, b=:AA==:, c=:AA==:, d=:AA==:, ${sha256}`], both],
    ["more than 4 KiB", "invalid", [`${sha256}, a=:${"AAAA".repeat(1024)}:`], both],
  ])("refuses %s", (_name, reason, lines, algorithms) => {
    const req = requestOf(lines);
    const refusal = refusalOf(() => verifyContentDigest(req, body, { algorithms, required: true }));
    expect(refusal).toMatchObject({ status: 401, code: `content-digest-${reason}` });
    expect(refusal.headers).toEqual({
      "Want-Content-Digest": algorithms.length === 2 ? "sha-256=10, sha-512=9" : "sha-256=10",
    });
    expect(hasVerifiedContentDigest(req)).toBe(false);
  });

  test("shows nothing of the received field in its message", () => {
    const refusal = refusalOf(() =>
      verifyContentDigest(requestOf(["sha-256=:SECRET:"]), body, { algorithms: both, required: true }),
    );
    expect(`${refusal.message} ${String(refusal.cause)}`).not.toContain("SECRET");
  });

  test("lets a missing field pass where it is not required, and vouches for nothing", () => {
    const req = requestOf([]);
    verifyContentDigest(req, body, { algorithms: both, required: false });
    expect(hasVerifiedContentDigest(req)).toBe(false);
  });

  test.each([
    ["a wrong digest", "mismatch", [otherSha256]],
    ["an empty field", "invalid", ["", " "]],
    ["an unknown algorithm", "unsupported", ["sha3=:AAAA:"]],
  ])("refuses %s even where the field is not required", (_name, reason, lines) => {
    const refusal = refusalOf(() =>
      verifyContentDigest(requestOf(lines), body, { algorithms: both, required: false }),
    );
    expect(refusal.code).toBe(`content-digest-${reason}`);
  });

  test("computes nothing the second time", () => {
    const req = requestOf([sha256]);
    verifyContentDigest(req, body, { algorithms: both, required: true });
    // Without the field a second computation could only refuse.
    req.rawHeaders.length = 0;
    expect(() => verifyContentDigest(req, body, { algorithms: both, required: true })).not.toThrow();
  });

  test("does not extend a verdict to an algorithm that was not checked", () => {
    const req = requestOf([sha256]);
    verifyContentDigest(req, body, { algorithms: ["sha-256"], required: true });
    const refusal = refusalOf(() =>
      verifyContentDigest(req, body, { algorithms: ["sha-512"], required: true }),
    );
    expect(refusal.code).toBe("content-digest-unsupported");
  });

  test("does not extend a verdict to other bytes", () => {
    const req = requestOf([sha256]);
    verifyContentDigest(req, body, { algorithms: both, required: true });
    expect(
      refusalOf(() => verifyContentDigest(req, Buffer.from("{}"), { algorithms: both, required: true })).code,
    ).toBe("content-digest-mismatch");
    expect(hasVerifiedContentDigest(req)).toBe(false);
  });
});

describe("createContentDigest", () => {
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
