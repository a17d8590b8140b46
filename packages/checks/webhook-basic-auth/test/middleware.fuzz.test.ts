import { describe, expect, test } from "@jest/globals";
import { isGuardError } from "@countersign/core";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import * as fc from "fast-check";
import { basic, requestOf, run } from "./harness.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const text = fc
  .string({ unit: "binary", minLength: 1, maxLength: 30 })
  .filter((value) => !/[\p{Cc}\p{Surrogate}\u2028\u2029]/u.test(value));
const name = text.filter((value) => !value.includes(":"));
const credential = fc.record({ username: name, password: text });

async function isAdmitted(guard: ReturnType<typeof webhookBasicAuth>, lines: string[]): Promise<boolean> {
  const error = await run(guard, requestOf(lines));
  if (error !== undefined && !(isGuardError(error) && error.status === 401)) throw error;
  return error === undefined;
}

describe("webhookBasicAuth", () => {
  test("admits exactly the configured pairs", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(credential, { minLength: 1, maxLength: 4, selector: (one) => JSON.stringify(one) }),
        credential,
        async (credentials, other) => {
          const guard = webhookBasicAuth({ credentials });
          for (const { username, password } of credentials) {
            expect(await isAdmitted(guard, [basic(username, password)])).toBe(true);
          }
          for (const username of [other.username, ...credentials.map((one) => one.username)]) {
            const known = credentials.some(
              (one) => one.username === username && one.password === other.password,
            );
            expect(await isAdmitted(guard, [basic(username, other.password)])).toBe(known);
          }
        },
      ),
    );
  });

  test("admits no mutated field that is not another spelling of the scheme", async () => {
    const guard = webhookBasicAuth({ username: "lender", password: "test-secret" });
    const right = basic("lender", "test-secret");
    const mutated = fc
      .record({ at: fc.nat(right.length), cut: fc.nat(2), inserted: fc.string({ maxLength: 2 }) })
      .map(({ at, cut, inserted }) => right.slice(0, at) + inserted + right.slice(at + cut));
    await fc.assert(
      fc.asyncProperty(mutated, async (field) => {
        const spelling = /^ *basic +(\S+) *$/i.exec(field)?.[1];
        expect(await isAdmitted(guard, [field])).toBe(spelling === right.slice("Basic ".length));
      }),
      fuzzRuns(2000),
    );
  });

  test("answers any lines with a verdict", async () => {
    const guards = [
      webhookBasicAuth({ username: "lender", password: "test-secret" }),
      webhookBasicAuth({ verify: () => false }),
    ];
    const bytes = fc
      .uint8Array({ maxLength: 40 })
      .map((array) => `Basic ${Buffer.from(array).toString("base64")}`);
    const lines = fc.array(
      fc.oneof(
        bytes,
        fc.string(),
        fc.string({ unit: "binary" }),
        fc.base64String().map((token) => `Basic ${token}`),
      ),
      {
        maxLength: 3,
      },
    );
    await fc.assert(
      fc.asyncProperty(lines, fc.constantFrom(...guards), async (values, guard) => {
        expect(await isAdmitted(guard, values)).toBe(false);
      }),
      fuzzRuns(2000),
    );
  });
});
