import { describe, expect, test } from "@jest/globals";
import { verify } from "@countersign/http-message-signatures";
import { sampleHeaders, signedRequest, strict, verdictOf } from "./hand-signer.ts";
import { refuses, signedWithQuery, withTarget, type Make } from "./hostile-rows.ts";

describe("target, method and values that are covered", () => {
  refuses(
    [
      ["absolute form", "https://example.com/api"],
      ["authority form", "example.com:443"],
      ["asterisk form", "*"],
      ["an empty target", ""],
      ["a query alone", "?a=1"],
      ["two slashes at the start", "//example.com/api"],
      ["a fragment", "/api#x"],
      ["a backslash", "/api\\x"],
      ["a dot segment", "/api/./x"],
      ["two dots as a segment", "/api/../x"],
      ["a dot at the end", "/api/."],
      ["two dots at the end", "/api/.."],
      ["an encoded dot", "/api/%2e%2E/x"],
      ["an encoded dot in a name", "/api%2ex"],
      ["a space", "/api /x"],
      ["non-ASCII", "/api/\u00e9"],
      ["a control character", "/api/\u0001"],
    ].map(([title, target]): readonly [string, string, Make] => [
      `${title} in the target`,
      "target-invalid",
      () => withTarget(target ?? ""),
    ]),
  );

  refuses([
    ["a fragment in the query", "target-invalid", () => withTarget("/api?a#b", "/api")],
    ["a backslash in the query", "target-invalid", () => withTarget("/api?a\\b", "/api")],
    ["another method than the signed one", "signature-mismatch", () => signedRequest({ method: "PUT" })],
    ["the method in lower case", "signature-mismatch", () => signedRequest({ method: "post" })],
    ["an empty method", "method-invalid", () => signedRequest({ method: "" })],
    ["a method that is no token", "method-invalid", () => signedRequest({ method: "POST\n" })],
    ["another path", "signature-mismatch", () => signedRequest({ target: "/api/v1/transaction/" })],
    [
      "the path in another case",
      "signature-mismatch",
      () => signedRequest({ target: "/API/v1/transaction" }),
    ],
    [
      "an encoded letter in the path",
      "signature-mismatch",
      () => signedRequest({ target: "/%61pi/v1/transaction" }),
    ],
    [
      "another covered query",
      "signature-mismatch",
      () => ({ ...signedWithQuery(), target: "/api/v1/transaction?to=c" }),
    ],
    [
      "another value of a covered field",
      "signature-mismatch",
      () => signedRequest({ headers: sampleHeaders.map((value) => value.replace("json", "xml")) }),
    ],
  ]);

  test("accepts dots that are no segment", () => {
    for (const path of ["/.well-known/x", "/a..b", "/...", "/a.", "/a.json"]) {
      expect(verdictOf(() => verify(withTarget(path), strict))).toBe("accepted");
    }
  });
});
