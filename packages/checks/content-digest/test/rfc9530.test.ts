import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { createContentDigest, verifyContentDigest } from "@countersign/content-digest";
import type { DigestAlgorithm } from "../dist/options.js";
import { refusalOf, requestOf } from "./harness.ts";
import { reportLeftOut } from "@countersign/test-support/servers/server-binaries.mjs";

interface DigestValue {
  readonly id: string;
  readonly algorithm: DigestAlgorithm;
  readonly value: string;
  readonly body_utf8?: string;
  readonly body_hex?: string;
}

const vectorsFolder = process.env["CONFORMANCE_VECTORS"];
const fixtures = new URL("fixtures/rfc9530.json", import.meta.url);
const { values } = readJson(
  vectorsFolder === undefined ? fixtures : join(vectorsFolder, "rfc9530", "digest-values.json"),
) as { readonly values: readonly DigestValue[] };
const both: readonly DigestAlgorithm[] = ["sha-256", "sha-512"];

describe("the examples of RFC 9530", () => {
  test.each(values.map((value) => [value.id, value.algorithm, value] as const))(
    "gives the digest of %s with %s, and takes no other",
    (_id, algorithm, { value, body_utf8: bodyUtf8 = "", body_hex: bodyHex }) => {
      const body = bodyHex === undefined ? Buffer.from(bodyUtf8) : Buffer.from(bodyHex, "hex");
      expect(createContentDigest(body, algorithm)).toBe(`${algorithm}=:${value}:`);
      const req = requestOf([`${algorithm}=:${value}:`]);
      verifyContentDigest(req, body, { algorithms: both, required: true });
      const longer = Buffer.concat([body, Buffer.from("\n")]);
      expect(
        refusalOf(() => verifyContentDigest(req, longer, { algorithms: both, required: true })).code,
      ).toBe("content-digest-mismatch");
    },
  );

  // Appendix B.4 prints one "=" too many after a sha-256 digest.
  test("are refused where the base64 has too much padding", () => {
    const req = requestOf(["sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg==:"]);
    const refusal = refusalOf(() =>
      verifyContentDigest(req, Buffer.from('{"hello": "world"}\n'), { algorithms: both, required: true }),
    );
    expect(refusal.code).toBe("content-digest-invalid");
  });
});

if (vectorsFolder === undefined) {
  reportLeftOut(
    "CONFORMANCE_VECTORS is not set: only the digests in test/fixtures were compared with RFC 9530.",
  );
} else {
  describe("the messages of RFC 9530", () => {
    const { messages } = readJson(join(vectorsFolder, "rfc9530", "messages.json")) as {
      messages: PublishedMessage[];
    };
    const requests = messages.flatMap(({ raw }) => requestWithDigest(raw));

    test("holds request messages with a body and a digest", () => {
      expect(requests.length).toBeGreaterThan(3);
    });

    test.each(requests)("decides on the message %s", (_startLine, field, body) => {
      const verify = (): unknown =>
        verifyContentDigest(requestOf([field]), body, { algorithms: both, required: true });
      if (field.includes("==:")) expect(refusalOf(verify).code).toBe("content-digest-invalid");
      else expect(verify).not.toThrow();
    });
  });
}

interface PublishedMessage {
  readonly raw: string;
}

function readJson(file: string | URL): unknown {
  return JSON.parse(readFileSync(file, "utf8"));
}

/** A request's start line, the value of its digest field, and its body, which the RFC prints without the final line feed. */
function requestWithDigest(raw: string): [string, string, Buffer][] {
  const [head = "", body] = raw.split("\n\n");
  const startLine = head.split("\n", 1)[0] ?? "";
  const field = /^(?:Content|Repr)-Digest: (.*)$/m.exec(head)?.[1];
  if (!/^(?:POST|PUT|PATCH) /.test(startLine) || field === undefined || body === undefined) return [];
  return [[startLine, field, Buffer.from(`${body.trimEnd()}\n`)]];
}
