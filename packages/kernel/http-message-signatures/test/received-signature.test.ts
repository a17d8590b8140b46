import { describe, expect, test } from "@jest/globals";
import { assertTimely, readSignature } from "@countersign/http-message-signatures";
import { now, profile, signByHand, signedRequest, verdictOf } from "./hand-signer.ts";
import { withFields } from "./hostile-rows.ts";

describe("readSignature", () => {
  test("verifies nothing yet", () => {
    const message = { ...signedRequest(), method: "PUT" };
    expect(readSignature(message, profile).keyid).toBe("test-key");
  });

  test("computes component values of the message that it read", () => {
    const { values } = readSignature(signedRequest(), profile);
    expect(values.target).toEqual({ path: "/api/v1/transaction", query: undefined });
    expect(values.valueOf("content-type")).toBe("application/json");
  });

  test("says of several misfits what is wrong with the first", () => {
    const proxy = signByHand({ label: "proxy", covered: [['"@method"', "POST"]] });
    const weak = signByHand({ label: "a", parameters: { alg: '"hmac-sha256"' } });
    const both = withFields(`${weak.input}, ${proxy.input}`, `${weak.signature}, ${proxy.signature}`);
    expect(verdictOf(() => readSignature(both, profile))).toBe("alg-mismatch");
  });

  test("lets a fault of the caller's own through", () => {
    const broken = { ...profile, requiredComponents: undefined as unknown as readonly string[] };
    expect(() => readSignature(signedRequest(), broken)).toThrow(TypeError);
  });
});

describe("assertTimely", () => {
  const limits = { windowSeconds: 60, clockSkewSeconds: 30 };
  test.each<[string, number, number, number, string]>([
    ["created a millisecond further ahead", now + 30, now + 40, now - 0.001, "created-in-future"],
    ["the instant of expires", now - 10, now, now, "accepted"],
    ["a millisecond after expires", now - 10, now, now + 0.001, "signature-expired"],
    ["a clock that gives NaN", now, now + 60, Number.NaN, "created-in-future"],
    ["created at zero", 0, 60, 30, "accepted"],
    ["a clock at minus infinity", now, now + 60, -Infinity, "created-in-future"],
    ["a clock at infinity", now, now + 60, Infinity, "signature-expired"],
  ])("decides on %s", (_title, created, expires, clock, verdict) => {
    expect(verdictOf(() => assertTimely({ created, expires }, limits, clock))).toBe(verdict);
  });

  test.each<[string, number, number]>([
    ["both", now * 1_000, now * 1_000 + 60_000],
    ["created alone", now * 1_000, now * 1_000 + 60],
    ["expires alone", now, (now + 60) * 1_000],
  ])("says of milliseconds what they are: %s", (_title, created, expires) => {
    expect(() => assertTimely({ created, expires }, limits, now)).toThrow("looks like milliseconds");
  });

  test("refuses when a limit is not a number", () => {
    const times = { created: now, expires: now + 60 };
    const unset = { windowSeconds: undefined, clockSkewSeconds: undefined } as unknown as typeof limits;
    expect(verdictOf(() => assertTimely(times, { ...limits, windowSeconds: unset.windowSeconds }, now))).toBe(
      "window-too-long",
    );
    expect(
      verdictOf(() => assertTimely(times, { ...limits, clockSkewSeconds: unset.clockSkewSeconds }, now)),
    ).toBe("created-in-future");
  });
});
