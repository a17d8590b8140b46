import { describe, expect, test } from "@jest/globals";
import { assertTimely, readSignature, type SignatureProfile } from "@countersign/http-message-signatures";
import { now, profile, sampleCovered, signByHand, signedRequest, verdictOf } from "./hand-signer.ts";
import { good, withFields, withParameters } from "./hostile-rows.ts";

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

  test("takes the one of several signatures that fits, whatever the order and the labels", () => {
    const proxy = signByHand({ label: "proxy", covered: [['"@method"', "POST"]] });
    const weak = signByHand({ label: "a", parameters: { alg: '"hmac-sha256"' } });
    const message = withFields(
      [proxy.input, weak.input, good.input].join(", "),
      [good.signature, proxy.signature, weak.signature].join(", "),
    );
    expect(readSignature(message, profile).label).toBe("sig1");
  });

  test("says of several misfits what is wrong with the first", () => {
    const proxy = signByHand({ label: "proxy", covered: [['"@method"', "POST"]] });
    const weak = signByHand({ label: "a", parameters: { alg: '"hmac-sha256"' } });
    const both = withFields(`${weak.input}, ${proxy.input}`, `${weak.signature}, ${proxy.signature}`);
    expect(verdictOf(() => readSignature(both, profile))).toBe("alg-mismatch");
  });

  test("follows the profile's required components", () => {
    const message = signedRequest({ covered: sampleCovered.slice(0, 2) });
    const required = (...requiredComponents: string[]): SignatureProfile => ({
      ...profile,
      requiredComponents,
    });
    expect(verdictOf(() => readSignature(message, required("@method", "@path")))).toBe("accepted");
    expect(verdictOf(() => readSignature(message, required()))).toBe("accepted");
    expect(verdictOf(() => readSignature(message, required("@path", "content-type")))).toBe(
      "component-required",
    );
  });

  test("takes no algorithm when the profile lists none", () => {
    expect(verdictOf(() => readSignature(signedRequest(), { ...profile, algorithms: [] }))).toBe(
      "alg-mismatch",
    );
  });

  test("lets a fault of the caller's own through", () => {
    const broken = { ...profile, requiredComponents: undefined as unknown as readonly string[] };
    expect(() => readSignature(signedRequest(), broken)).toThrow(TypeError);
  });

  test("keeps the parameters in their order", () => {
    const { input } = readSignature(withParameters({ tag: '"a"', flag: "?1" }), profile);
    expect([...input.parameters.keys()]).toEqual([
      "created",
      "expires",
      "keyid",
      "alg",
      "nonce",
      "tag",
      "flag",
    ]);
  });
});

describe("assertTimely", () => {
  const limits = { windowSeconds: 60, clockSkewSeconds: 30 };
  test.each<[string, number, number, number, string]>([
    ["the whole window", now, now + 60, now, "accepted"],
    ["a second over the window", now, now + 61, now, "window-too-long"],
    ["created as far ahead as allowed", now + 30, now + 40, now, "accepted"],
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
