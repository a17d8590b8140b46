import { payoutEndpoint, type PayoutEndpointOptions } from "@countersign/payout";
import { describe, expect, test } from "@jest/globals";
import type { Overrides } from "@countersign/test-support/runs/sections.ts";
import { optionsWith } from "./platform.ts";

describe("payoutEndpoint", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["no addresses at all", { addresses: undefined }, "option addresses must be an object such as { allow"],
    ["no signature", { signature: undefined }, "option signature must be an object such as { keys, nonces }"],
    ["no idempotency", { idempotency: undefined }, "option idempotency must be an object such as { store }"],
    ["a status of an address", { addresses: { status: 403 } }, "option addresses.status cannot be set here"],
    [
      "algorithms, since the key says its own",
      { signature: { algorithms: ["ed25519"] } },
      "option signature.algorithms cannot be set here",
    ],
    [
      "parameters that the interface asks for",
      { signature: { requiredParameters: ["keyid", "created"] } },
      "option signature.requiredParameters cannot be set here",
    ],
    [
      "a body that nothing signs",
      { signature: { allowUnsignedBody: true } },
      "option signature.allowUnsignedBody cannot be set here",
    ],
    ["another key", { idempotency: { key: () => "k" } }, "option idempotency.key cannot be set here"],
    // On this wire 409 is final, and whatever is not certain is 503.
    ...(["methods", "required", "doneStatus", "inFlightStatus", "replay"] as const).map(
      (name): [string, Record<string, unknown>, string] => [
        `an idempotency.${name}`,
        { idempotency: { [name]: undefined } },
        `option idempotency.${name} cannot be set here`,
      ],
    ),
    ["an unknown option", { allowIp: ["192.0.2.1"] }, "unknown option allowIp;"],
    ["no keys", { signature: { keys: undefined } }, "option signature.keys "],
    ["no nonces", { signature: { nonces: undefined } }, "option signature.nonces "],
    ["no addresses", { addresses: { allow: undefined } }, "option addresses.allow must be"],
    ["no store", { idempotency: { store: undefined } }, "option idempotency.store must be"],
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
    ["an unknown length", { maxLengths: { iban: 34 } }, "unknown option maxLengths.iban;"],
    ["a length of 0", { maxLengths: { reference: 0 } }, "option maxLengths.reference must be"],
    [
      "a key length above the stores'",
      { maxLengths: { idempotencyKey: 506 } },
      "option maxLengths.idempotencyKey",
    ],
    [
      "a key length above the stores' with a longer scope",
      { idempotency: { scope: "a".repeat(32) }, maxLengths: { idempotencyKey: 480 } },
      "option maxLengths.idempotencyKey",
    ],
    ["other errors", { errors: "hide" }, "option errors must be"],
    ["an onReject that is no function", { onReject: "log" }, "option onReject must be a function"],
    [
      "onReject with forward",
      { errors: "forward", onReject: () => undefined },
      "option onReject has no effect",
    ],
    [
      "components without the digest",
      { signature: { requiredComponents: ["@method", "@path"] } },
      "option signature.requiredComponents",
    ],
    [
      "components that are no list",
      { signature: { requiredComponents: "@method" } },
      "option signature.requiredComponents",
    ],
    [
      "lengths that are a promise",
      { maxLengths: Promise.resolve({}) },
      "option maxLengths must be an object",
    ],
    [
      "a fingerprint of null",
      { idempotency: { fingerprint: null } },
      "option idempotency.fingerprint must be a function, got null",
    ],
    [
      "a fingerprint that is no function",
      { idempotency: { fingerprint: "body" } },
      "option idempotency.fingerprint must be",
    ],
  ])("refuses %s by the name that was written", (_name, overrides, message) => {
    const build = (): unknown => payoutEndpoint(optionsWith(overrides));
    expect(build).toThrow(TypeError);
    expect(build).toThrow(`payoutEndpoint: ${message}`);
  });

  test("refuses to be built without options", () => {
    expect(() => payoutEndpoint(undefined as never)).toThrow("payoutEndpoint: options must be an object");
  });

  test.each<[string, Overrides<PayoutEndpointOptions>]>([
    [
      "every address by a dangerous name",
      { addresses: { allow: ["0.0.0.0/0"], dangerouslyAllowAnyAddress: true } },
    ],
    [
      "further components",
      {
        signature: {
          requiredComponents: ["@authority", "@method", "@path", "content-type", "content-digest"],
          origin: "https://pay.example",
        },
      },
    ],
    ["a tag", { signature: { tag: { require: ["payout"] } } }],
    [
      "undefined for every optional member",
      { signature: { limit: undefined }, findBusiness: undefined, errors: undefined },
    ],
  ])("accepts %s", (_name, overrides) => {
    expect(payoutEndpoint(optionsWith(overrides)).name).toBe("payoutEndpointMiddleware");
  });

  test("takes a store of another endpoint or guard only where each has a scope", () => {
    const { store } = optionsWith().idempotency;
    payoutEndpoint(optionsWith({ idempotency: { store, scope: "payout-eu" } }));
    payoutEndpoint(optionsWith({ idempotency: { store, scope: "payout-us" } }));
    expect(() => payoutEndpoint(optionsWith({ idempotency: { store } }))).toThrow(
      "payoutEndpoint: option idempotency: this store was given to another guard already",
    );
  });

  test("leaves its options as they are", () => {
    expect(() => payoutEndpoint(Object.freeze(optionsWith()))).not.toThrow();
  });
});
