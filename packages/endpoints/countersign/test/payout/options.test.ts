import { payoutEndpoint, type PayoutEndpointOptions } from "countersign/payout";
import { describe, expect, test } from "@jest/globals";
import type { Overrides } from "@countersign/test-support/runs/sections.ts";
import { optionsWith } from "./platform.ts";

describe("payoutEndpoint", () => {
  // The key says its algorithm; on this wire 409 is final, and whatever is not certain is 503.
  test.each<[section: "addresses" | "signature" | "idempotency", option: string, value: unknown]>([
    ["addresses", "status", 403],
    ["signature", "algorithms", ["ed25519"]],
    ["signature", "requiredParameters", ["keyid", "created"]],
    ["signature", "allowUnsignedBody", true],
    ["idempotency", "key", () => "k"],
    ["idempotency", "methods", undefined],
    ["idempotency", "required", undefined],
    ["idempotency", "doneStatus", undefined],
    ["idempotency", "inFlightStatus", undefined],
    ["idempotency", "replay", undefined],
  ])("refuses %s.%s, which the interface decides", (section, option, value) => {
    const build = (): unknown => payoutEndpoint(optionsWith({ [section]: { [option]: value } }));
    expect(build).toThrow(TypeError);
    expect(build).toThrow(`payoutEndpoint: option ${section}.${option} cannot be set here`);
  });

  const scoped = { idempotency: { scope: "a".repeat(32) } };
  const covering = (requiredComponents: unknown): object => ({ signature: { requiredComponents } });
  const printing = (fingerprint: unknown): object => ({ idempotency: { fingerprint } });

  test.each<[string, object, string]>([
    ["no addresses at all", { addresses: undefined }, "option addresses must be an object such as { allow"],
    ["no signature", { signature: undefined }, "option signature must be an object such as { keys, nonces }"],
    ["no idempotency", { idempotency: undefined }, "option idempotency must be an object such as { store }"],
    ["an unknown option", { allowIp: ["192.0.2.1"] }, "unknown option allowIp;"],
    ["no keys", { signature: { keys: undefined } }, "option signature.keys "],
    ["no nonces", { signature: { nonces: undefined } }, "option signature.nonces "],
    ["no addresses", { addresses: { allow: undefined } }, "option addresses.allow must be"],
    ["no store", { idempotency: { store: undefined } }, "option idempotency.store must be"],
    ["a findBusiness that is no function", { findBusiness: {} }, "option findBusiness must be a function"],
    ["a lookupTimeoutMs of 0", { lookupTimeoutMs: 0 }, "option lookupTimeoutMs must be"],
    ["an empty referenceField", { referenceField: "" }, "option referenceField must be"],
    ["a referenceField that is no string", { referenceField: 1 }, "option referenceField must be"],
    ["a referenceField of the interface", { referenceField: "amount" }, "option referenceField must be"],
    ["a referenceField __proto__", { referenceField: "__proto__" }, "option referenceField must be"],
    ["an unknown length", { maxLengths: { iban: 34 } }, "unknown option maxLengths.iban;"],
    ["a length of 0", { maxLengths: { reference: 0 } }, "option maxLengths.reference must be"],
    ["a longer key than stores take", { maxLengths: { idempotencyKey: 506 } }, "option maxLengths.idemp"],
    [
      "a longer key with its scope",
      { maxLengths: { idempotencyKey: 480 }, ...scoped },
      "option maxLengths.i",
    ],
    ["other errors", { errors: "hide" }, "option errors must be"],
    ["an onReject that is no function", { onReject: "log" }, "option onReject must be a function"],
    ["onReject with forward", { errors: "forward", onReject: () => {} }, "option onReject has no effect"],
    ["components without the digest", covering(["@method", "@path"]), "option signature.requiredComponents"],
    ["components that are no list", covering("@method"), "option signature.requiredComponents"],
    [
      "lengths that are a promise",
      { maxLengths: Promise.resolve({}) },
      "option maxLengths must be an object",
    ],
    ["a fingerprint of null", printing(null), "option idempotency.fingerprint must be a function, got null"],
    ["a fingerprint that is no function", printing("body"), "option idempotency.fingerprint must be"],
  ])("refuses %s by the name that was written", (_name, overrides, message) => {
    const build = (): unknown => payoutEndpoint(optionsWith(overrides));
    expect(build).toThrow(TypeError);
    expect(build).toThrow(`payoutEndpoint: ${message}`);
  });

  test("refuses a policy that is no function", () => {
    const build = (): unknown => payoutEndpoint(optionsWith({ signature: { policy: {} as never } }));
    expect(build).toThrow("payoutEndpoint: option signature.policy must be a function");
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
