import { describe, expect, test } from "@jest/globals";
import { assertTimely, readSignature } from "@countersign/http-message-signatures";
import { endOf } from "@countersign/http-message-signatures/internal";
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
  type Time = number | undefined;
  test.each<[string, Time, Time, number, string]>([
    ["created a millisecond further ahead", now + 30, now + 40, now - 0.001, "created-in-future"],
    ["the instant of expires", now - 10, now, now, "accepted"],
    ["a millisecond after expires", now - 10, now, now + 0.001, "signature-expired"],
    ["a clock that gives NaN", now, now + 60, Number.NaN, "created-in-future"],
    ["created at zero", 0, 60, 30, "accepted"],
    ["a clock at minus infinity", now, now + 60, -Infinity, "created-in-future"],
    ["a clock at infinity", now, now + 60, Infinity, "signature-expired"],
    ["created alone, after the window", now, undefined, now + 60.001, "signature-expired"],
    ["created alone, as far ahead as allowed", now + 30, undefined, now, "accepted"],
    ["created alone, further ahead", now + 30.001, undefined, now, "created-in-future"],
    ["expires alone, now", undefined, now, now, "accepted"],
    ["expires alone, gone", undefined, now, now + 0.001, "signature-expired"],
    ["expires alone, by a clock that gives NaN", undefined, now, Number.NaN, "window-too-long"],
    ["created alone, by a clock that gives NaN", now, undefined, Number.NaN, "created-in-future"],
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

  test.each<[string, object, Time, Time, string]>([
    ["windowSeconds", { windowSeconds: undefined }, now, now + 60, "window-too-long"],
    ["windowSeconds, of created alone", { windowSeconds: undefined }, now, undefined, "window-too-long"],
    ["windowSeconds, of expires alone", { windowSeconds: undefined }, undefined, now, "window-too-long"],
    ["clockSkewSeconds", { clockSkewSeconds: undefined }, now, now + 60, "created-in-future"],
  ])("refuses when a limit is not a number: %s", (_title, unset, created, expires, verdict) => {
    const check = () => assertTimely({ created, expires }, { ...limits, ...unset }, now);
    expect(verdictOf(check)).toBe(verdict);
  });
});

test("a signature has an end: expires, or created and the window", () => {
  expect(endOf({ created: now, expires: now + 5 }, 60)).toBe(now + 5);
  expect(endOf({ created: now, expires: undefined }, 60)).toBe(now + 60);
  expect(endOf({ created: undefined, expires: undefined }, 60)).toBeUndefined();
});
