import { payoutEndpoint, type PayoutEndpointOptions } from "@countersign/payout";
import { describe, expect, test } from "@jest/globals";
import { optionsWith } from "./platform.ts";

describe("payoutEndpoint", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["an unknown option", { allowIp: ["192.0.2.1"] }, "unknown option allowIp;"],
    ["no keys", { keys: undefined }, "option keys "],
    ["an empty record of keys", { keys: {} }, "option keys "],
    ["no nonces", { nonces: undefined }, "option nonces "],
    ["a nonce store without claim", { nonces: {} }, "option nonces "],
    ["no allowIps", { allowIps: undefined }, "option allowIps must be"],
    ["empty allowIps", { allowIps: [] }, "option allowIps must be"],
    ["an empty string in allowIps", { allowIps: ["192.0.2.1", ""] }, "option allowIps[1] must be"],
    ["allowIps that admit everybody", { allowIps: ["0.0.0.0/0"] }, "option allowIps admits every"],
    ["no store", { store: undefined }, "option store must be"],
    ["a store that cannot complete", { store: { claim: () => undefined } }, "option store."],
    ["a findBusiness that is no function", { findBusiness: {} }, "option findBusiness must be a function"],
    ["a lookupTimeoutMs of 0", { lookupTimeoutMs: 0 }, "option lookupTimeoutMs must be"],
    ["an empty referenceField", { referenceField: "" }, "option referenceField must be"],
    ["a referenceField that is no string", { referenceField: 1 }, "option referenceField must be"],
    [
      "a referenceField that the interface uses",
      { referenceField: "amount" },
      "option referenceField must be",
    ],
    ["a referenceField __proto__", { referenceField: "__proto__" }, "option referenceField must be"],
    ["an unknown length", { maxLengths: { iban: 34 } }, "option maxLengths: unknown option iban"],
    ["a length of 0", { maxLengths: { reference: 0 } }, "option maxLengths.reference must be"],
    [
      "a key length above the stores'",
      { maxLengths: { idempotencyKey: 506 } },
      "option maxLengths.idempotencyKey",
    ],
    [
      "a key length above the stores' with a longer scope",
      { scope: "a".repeat(32), maxLengths: { idempotencyKey: 480 } },
      "option maxLengths.idempotencyKey",
    ],
    ["a scope with a colon", { scope: "eu:payout" }, "option scope must be"],
    ["other errors", { errors: "hide" }, "option errors must be"],
    ["an onReject that is no function", { onReject: "log" }, "option onReject must be a function"],
    [
      "onReject with forward",
      { errors: "forward", onReject: () => undefined },
      "option onReject has no effect",
    ],
    [
      "components without the digest",
      { requiredComponents: ["@method", "@path"] },
      "option requiredComponents",
    ],
    ["components that are no list", { requiredComponents: "@method" }, "option requiredComponents"],
    ["a windowSeconds of 0", { windowSeconds: 0 }, "option windowSeconds must be"],
    ["a negative clockSkewSeconds", { clockSkewSeconds: -1 }, "option clockSkewSeconds must be"],
    ["a pathPrefix with a slash at its end", { pathPrefix: "/payments/" }, "option pathPrefix must be"],
    ["a clock that is no function", { clock: 0 }, "option clock must be"],
    ["a limit that is a word", { limit: "large" }, "option limit must be"],
    [
      "allowUnsignedQuery that is no boolean",
      { allowUnsignedQuery: "no" },
      "option allowUnsignedQuery must be",
    ],
    ["a leaseMs of 1", { leaseMs: 1 }, "option leaseMs must be"],
    ["a negative waitMs", { waitMs: -1 }, "option waitMs must be"],
    ["an unknown recovery", { recovery: "retry" }, "option recovery must be"],
    ["lengths that are a promise", { maxLengths: Promise.resolve({}) }, "option maxLengths: options must be"],
    ["a fingerprint of null", { fingerprint: null }, "option fingerprint must be a function, got null"],
    ["a fingerprint that is no function", { fingerprint: "body" }, "option fingerprint must be"],
    [
      "@authority without an origin",
      { requiredComponents: ["@authority", "@method", "@path", "content-type", "content-digest"] },
      'option origin must be the origin that callers see, such as "https://pay.example", where @authority is required',
    ],
    ["a tag that is no object", { tag: "payout" }, "option tag: options must be an object"],
    ["an empty tag", { tag: { require: "" } }, "option tag.require must be"],
    ["a storeTimeoutMs of 0", { storeTimeoutMs: 0 }, "option storeTimeoutMs must be"],
    ["a reusedStatus of 200", { reusedStatus: 200 }, "option reusedStatus must be"],
  ])("refuses %s by the name that was written", (_name, overrides, message) => {
    const build = (): unknown => payoutEndpoint({ ...optionsWith(), ...overrides });
    expect(build).toThrow(TypeError);
    expect(build).toThrow(`payoutEndpoint: ${message}`);
  });

  test("refuses to be built without options", () => {
    expect(() => payoutEndpoint(undefined as never)).toThrow("payoutEndpoint: options must be an object");
  });

  test.each<[string, Partial<PayoutEndpointOptions>]>([
    ["every address by a dangerous name", { allowIps: ["0.0.0.0/0"], dangerouslyAllowAnyAddress: true }],
    [
      "further components",
      {
        requiredComponents: ["@authority", "@method", "@path", "content-type", "content-digest"],
        origin: "https://pay.example",
      },
    ],
    ["a tag", { tag: { require: ["payout"] } }],
    ["undefined for every optional member", { findBusiness: undefined, errors: undefined, limit: undefined }],
  ])("accepts %s", (_name, overrides) => {
    expect(payoutEndpoint(optionsWith(overrides)).name).toBe("payoutEndpointMiddleware");
  });

  test("takes a store of another endpoint or guard only where each has a scope", () => {
    const { store } = optionsWith();
    payoutEndpoint(optionsWith({ store, scope: "payout-eu" }));
    payoutEndpoint(optionsWith({ store, scope: "payout-us" }));
    expect(() => payoutEndpoint(optionsWith({ store }))).toThrow(
      "payoutEndpoint: this store was given to another guard already",
    );
  });

  test("leaves its options as they are", () => {
    expect(() => payoutEndpoint(Object.freeze(optionsWith()))).not.toThrow();
  });
});
