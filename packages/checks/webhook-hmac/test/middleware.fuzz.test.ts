import { describe, expect, test } from "@jest/globals";
import { isGuardError } from "@countersign/core";
import type { Middleware } from "@countersign/express";
import { signPayload, webhookHmac } from "@countersign/webhook-hmac";
import * as fc from "fast-check";
import { requestOf, run } from "./harness.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const bytes = fc.uint8Array({ maxLength: 200 });
// RFC 2104 pads keys with zeros, so that two secrets that differ in zeros at the end are one key.
const secret = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 40 })
  .filter((text) => text.trim() !== "" && !text.includes("\0"));

const either = { header: "X-Payload-Signature", signatureEncodings: ["base64", "hex"] } as const;

async function isAdmitted(guard: Middleware, lines: readonly string[], body: Uint8Array): Promise<boolean> {
  const error = await run(guard, requestOf(lines, body));
  if (error !== undefined && !(isGuardError(error) && error.status === 401)) throw error;
  return error === undefined;
}

describe("webhookHmac", () => {
  test("admits what signPayload signed with one of the secrets, and nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(
        bytes,
        fc.uniqueArray(secret, { minLength: 1, maxLength: 3 }),
        secret,
        async (body, secrets, other) => {
          const guard = webhookHmac({ secrets });
          for (const key of [...secrets, other]) {
            expect(await isAdmitted(guard, [signPayload(body, key)], body)).toBe(secrets.includes(key));
          }
        },
      ),
    );
  });

  test("refuses any changed bit of the body", async () => {
    const guard = webhookHmac({ secret: "test-secret" });
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), fc.nat(), async (body, at) => {
        const changed = Uint8Array.from(body);
        const bit = at % (body.length * 8);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const signature = signPayload(body, "test-secret");
        expect(await isAdmitted(guard, [signature], changed)).toBe(false);
      }),
    );
  });

  test("admits no mutated field but white space around the right one", async () => {
    const guard = webhookHmac({ secret: "test-secret", scheme: either });
    const body = Buffer.from("{}");
    const signature = signPayload(body, "test-secret");
    const spellings = [signature, Buffer.from(signature, "base64").toString("hex")];
    const mutated = fc
      .record({
        right: fc.constantFrom(...spellings),
        at: fc.nat(64),
        cut: fc.nat(2),
        inserted: fc.string({ maxLength: 2 }),
      })
      .map(({ right, at, cut, inserted }) => right.slice(0, at) + inserted + right.slice(at + cut));
    await fc.assert(
      fc.asyncProperty(mutated, async (field) => {
        const trimmed = field.replaceAll(/^[ \t]+|[ \t]+$/g, "");
        const isRight = spellings.includes(trimmed) || trimmed.toLowerCase() === spellings[1];
        expect(await isAdmitted(guard, [field], body)).toBe(isRight);
      }),
      fuzzRuns(2000),
    );
  });

  test("answers any lines and any body with a verdict", async () => {
    const guard = webhookHmac({ secret: "test-secret", scheme: either });
    const line = fc.oneof(
      fc.string(),
      fc.string({ unit: "binary" }),
      fc
        .uint8Array({ minLength: 30, maxLength: 34 })
        .map((signature) => Buffer.from(signature).toString("base64")),
      fc
        .uint8Array({ minLength: 30, maxLength: 34 })
        .map((signature) => Buffer.from(signature).toString("hex")),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 3 }), bytes, async (lines, body) => {
        expect(await isAdmitted(guard, lines, body)).toBe(false);
      }),
      fuzzRuns(1000),
    );
  });
});
