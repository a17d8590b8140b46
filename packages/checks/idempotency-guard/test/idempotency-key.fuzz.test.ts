import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { isGuardError } from "@countersign/core";
import { checkFingerprint, checkIdempotencyKey } from "../src/request-key.ts";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

test("any key is taken as it is, or refused with 400", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: codePoint, maxLength: 600 }), fc.anything()), (key) => {
      try {
        const { key: checked } = checkIdempotencyKey(key);
        expect(checked).toBe(key);
        expect(checked.length).toBeLessThanOrEqual(512);
        expect(Buffer.from(checked, "utf8").toString("utf8")).toBe(key);
      } catch (error) {
        if (!isGuardError(error)) throw error;
        expect(error.status).toBe(400);
        expect(error.code).toMatch(/^idempotency-key-(?:missing|invalid)$/);
      }
    }),
    fuzzRuns(2_000),
  );
});

test("any fingerprint is taken as it is, or refused with 500", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 140 }), fc.anything()), (fingerprint) => {
      try {
        expect(checkFingerprint(fingerprint)).toBe(fingerprint);
      } catch (error) {
        if (!isGuardError(error)) throw error;
        expect(error).toMatchObject({ status: 500, code: "fingerprint-invalid" });
      }
    }),
  );
});
