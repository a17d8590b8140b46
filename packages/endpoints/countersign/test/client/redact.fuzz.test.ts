import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { redact } from "../../src/client/redact.ts";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const secret = fc.string({ unit: "grapheme", minLength: 12, maxLength: 40 });
const between = fc.string({ maxLength: 20 });

describe("redact", () => {
  test("leaves no secret, whatever stands around it and however it is cut", () => {
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 3 }),
        fc.array(between),
        fc.nat(),
        (secrets, texts, cut) => {
          const whole = texts
            .map((text, index) => `${text}${secrets[index % secrets.length] ?? ""}`)
            .join("");
          const end = cut % (whole.length + 1);
          const result = redact({ text: whole.slice(0, end), truncated: end < whole.length }, secrets);
          for (const each of secrets) expect(result).not.toContain(each);
        },
      ),
      fuzzRuns(500),
    );
  });

  test("finds a secret in JSON and in a query", () => {
    fc.assert(
      fc.property(secret, (each) => {
        const text = `${JSON.stringify({ each })}?q=${encodeURIComponent(each)}`;
        expect(redact({ text, truncated: false }, [each])).toBe('{"each":"[redacted]"}?q=[redacted]');
      }),
      fuzzRuns(500),
    );
  });

  test("changes nothing else", () => {
    expect(redact({ text: '{"detail":"url is taken"}', truncated: false }, ["test-secret"])).toBe(
      '{"detail":"url is taken"}',
    );
  });

  test("takes a secret within another for the longer one", () => {
    expect(
      redact({ text: "test-secret-2 test-secret", truncated: false }, ["test-secret", "test-secret-2"]),
    ).toBe("[redacted] [redacted]");
  });

  test("leaves its own marks alone where a secret is one letter", () => {
    expect(redact({ text: "a b c", truncated: false }, ["a", "c"])).toBe("[redacted] b [redacted]");
  });
});
