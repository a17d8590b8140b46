import { createHash } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { createContentDigest, verifyContentDigest } from "@countersign/content-digest";
import type { DigestAlgorithm } from "../dist/digest-fields.js";
import { isGuardError } from "@countersign/core";
import * as fc from "fast-check";
import { requestOf } from "./harness.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const both: readonly DigestAlgorithm[] = ["sha-256", "sha-512"];
const algorithms = fc.constantFrom(...both);
const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));

describe("verifyContentDigest", () => {
  test("accepts what createContentDigest wrote, for any bytes", () => {
    fc.assert(
      fc.property(bytes, algorithms, (body, algorithm) => {
        expect(isAccepted([createContentDigest(body, algorithm)], body)).toBe(true);
      }),
    );
  });

  test("refuses any changed bit of the body", () => {
    fc.assert(
      fc.property(bytes, algorithms, fc.nat(), (body, algorithm, at) => {
        fc.pre(body.length > 0);
        const changed = Buffer.from(body);
        const bit = at % (body.length * 8);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(isAccepted([createContentDigest(body, algorithm)], changed)).toBe(false);
      }),
    );
  });

  test("accepts no mutated field in which the digest itself is not spelt out", () => {
    fc.assert(
      fc.property(bytes, fc.nat(), fc.nat(2), fc.string({ maxLength: 2 }), (body, at, cut, inserted) => {
        const field = createContentDigest(body);
        const index = at % (field.length + 1);
        const mutated = field.slice(0, index) + inserted + field.slice(index + cut);
        const digest = createHash("sha256").update(body).digest("base64");
        if (isAccepted([mutated], body)) expect(mutated).toContain(`sha-256=:${digest}:`);
      }),
      fuzzRuns(1000),
    );
  });

  test("answers any lines with a verdict", () => {
    const piece = fc.constantFrom(
      "sha-256",
      "sha-512",
      "=",
      ":",
      ",",
      " ",
      ";a",
      "AAAA",
      "==",
      "\t",
      "?1",
      "é",
      "(",
    );
    const line = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 3 }), (lines) => {
        expect(isAccepted(lines, Buffer.from("body"))).toBe(false);
      }),
      fuzzRuns(1000),
    );
  });
});

function isAccepted(lines: readonly string[], body: Buffer): boolean {
  try {
    verifyContentDigest(requestOf(lines), body, { algorithms: both, required: true });
    return true;
  } catch (error) {
    if (isGuardError(error) && error.status === 401) return false;
    throw error;
  }
}
