import { generateKeyPairSync } from "node:crypto";
import { createSigner, responseSigner, signResponse } from "@countersign/http-signature-verify/sign";
import { describe, expect, test } from "@jest/globals";

const signer = createSigner(generateKeyPairSync("ed25519").privateKey, "platform");

describe("the options of signResponse", () => {
  test.each<[string, unknown, string | undefined]>([
    ["no options", undefined, undefined],
    ["no signer", {}, "signer"],
    ["a signer without a keyid", { signer: { ...signer, keyid: "" } }, "signer"],
    ["a signer of another algorithm", { signer: { ...signer, alg: "none" } }, "signer"],
    ["a signer that cannot sign", { signer: { ...signer, sign: "x" } }, "signer"],
    ["a component that is none", { signer, components: ["X-Upper"] }, "components"],
    ["a component that a receipt has anyway", { signer, components: ["content-digest"] }, "components"],
    ["a component that no response has", { signer, components: ["@method"] }, "components"],
    ["a component twice", { signer, components: ["x-a", "x-a"] }, "components"],
    ["components that are no list", { signer, components: "x-batch" }, "components"],
    ["an upper-case label", { signer, label: "Receipt" }, "label"],
    ["an empty tag", { signer, tag: "" }, "tag"],
    ["no limit", { signer, limit: 0 }, "limit"],
    ["no time to sign", { signer, signTimeoutMs: 0 }, "signTimeoutMs"],
    ["a clock that is none", { signer, clock: 1 }, "clock"],
    ["another option", { signer, key: 1 }, "key"],
  ])("are checked when it is built: %s", (_name, options, option) => {
    const expected = expect.objectContaining({ name: "TypeError", factory: "signResponse", option });
    expect(() => signResponse(options as never)).toThrow(expected);
    expect(() => responseSigner(options as never)).toThrow(expected);
  });
});
