import { describe, expect, test } from "@jest/globals";
import { verifyContentDigest } from "@countersign/content-digest";
import { isGuardError } from "@countersign/core";
import * as fc from "fast-check";
import { requestOf } from "./harness.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

describe("verifyContentDigest", () => {
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
    verifyContentDigest(requestOf(lines), body);
    return true;
  } catch (error) {
    if (isGuardError(error) && error.status === 401) return false;
    throw error;
  }
}
