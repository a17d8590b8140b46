import { describe, expect, test } from "@jest/globals";
import {
  answerDigests,
  createReprDigest,
  verifyReprDigest,
  wantContentDigest,
} from "@countersign/content-digest";
import type { DigestAlgorithm } from "../dist/options.js";
import { refusalOf } from "./harness.ts";

// RFC 9530 appendix B: the whole representation, of which a 206 carries a part.
const whole = Buffer.from('{"hello": "world"}\n');
const published = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
const message = (...lines: string[]) => ({
  rawHeaders: lines.flatMap((line) => ["Repr-Digest", line]),
});

describe("Repr-Digest", () => {
  test("is made and taken over the whole representation", () => {
    expect(createReprDigest(whole)).toBe(published);
    const digests = verifyReprDigest(message(published), whole);
    expect([...(digests?.keys() ?? [])]).toEqual(["sha-256"]);
    const both = message(published, createReprDigest(whole, "sha-512"));
    expect(verifyReprDigest(both, whole)?.size).toBe(2);
  });

  test("of which a message carries a part is not that of the part", () => {
    const part = whole.subarray(10);
    expect(refusalOf(() => verifyReprDigest(message(published), part)).code).toBe("repr-digest-mismatch");
  });

  test.each<[string, readonly string[]]>([
    ["repr-digest-missing", []],
    ["repr-digest-missing", [""]],
    ["repr-digest-invalid", ["sha-256=RK"]],
    ["repr-digest-invalid", ["sha-256=:AAAA:"]],
    ["repr-digest-invalid", [published, published]],
    ["repr-digest-invalid", [published.replace("=:", "==:")]],
    ["repr-digest-unsupported", ["md5=:Sd/dVLAcvNLSq16eXua5uQ==:"]],
    ["repr-digest-mismatch", [published, createReprDigest(Buffer.from("x"), "sha-512")]],
  ])("refuses with %s: %j", (code, lines) => {
    const refusal = refusalOf(() => verifyReprDigest(message(...lines), whole, { status: 400 }));
    expect(refusal).toMatchObject({ code, status: 400 });
    expect(refusal.headers).toEqual({ "Want-Repr-Digest": "sha-256=10, sha-512=9" });
  });

  test("may be absent where it is not required", () => {
    expect(verifyReprDigest(message(), whole, { required: false })).toBeUndefined();
  });

  test("is no Content-Digest", () => {
    const other = { rawHeaders: ["Content-Digest", published] };
    expect(refusalOf(() => verifyReprDigest(other, whole)).code).toBe("repr-digest-missing");
  });

  test.each([["text" as never], [undefined as never]])("throws a TypeError on %j", (bytes) => {
    expect(() => createReprDigest(bytes)).toThrow(/^createReprDigest: bytes/);
    expect(() => createReprDigest(whole, bytes ?? ("md5" as never))).toThrow(/^createReprDigest: algorithm/);
  });
});

/** The algorithm of the digest that answers these lines; undefined without one. */
function preferred(lines: readonly string[], algorithms?: readonly DigestAlgorithm[]): string | undefined {
  const request = { method: "GET", rawHeaders: lines.flatMap((line) => ["Want-Content-Digest", line]) };
  const answer = { status: 200, rawHeaders: [], body: whole };
  const digests = answerDigests(request, answer, { algorithms, onlyWanted: true });
  return digests["Content-Digest"]?.split("=:")[0];
}

describe("the algorithm that a request prefers", () => {
  test.each<[string, readonly string[], DigestAlgorithm | undefined]>([
    ["the example of RFC 9530 section 4", ["sha-512=3, sha-256=10, unixsum=0"], "sha-256"],
    ["two lines", ["sha-512=3", "sha-256=2"], "sha-512"],
    ["equal weights", ["sha-512=5, sha-256=5"], "sha-256"],
    ["one that is not acceptable", ["sha-256=0, sha-512=1"], "sha-512"],
    ["none that is acceptable", ["sha-256=0"], undefined],
    ["none that is known", ["md5=10"], undefined],
    ["no field", [], undefined],
    ["an empty field", [""], undefined],
    ["a weight above 10", ["sha-256=11"], undefined],
    ["a negative weight", ["sha-256=-1, sha-512=1"], undefined],
    ["a decimal", ["sha-256=1.0"], undefined],
    ["a flag", ["sha-256"], undefined],
    ["an inner list", ["sha-256=(1)"], undefined],
    ["an algorithm twice", ["sha-256=1, sha-256=2"], undefined],
    ["text", ["SHA-256"], undefined],
    ["what wantContentDigest writes", [wantContentDigest(["sha-512", "sha-256"])], "sha-512"],
  ])("decides on %s", (_title, lines, expected) => {
    expect(preferred(lines)).toBe(expected);
  });

  test("chooses of what is offered alone", () => {
    expect(preferred(["sha-256=10, sha-512=1"], ["sha-512"])).toBe("sha-512");
  });
});
