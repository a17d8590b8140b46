import { withOwnOptionNames } from "@countersign/guard";
import { describe, expect, test } from "@jest/globals";

describe("withOwnOptionNames", () => {
  const part = { factory: "ipAllowlist", ownNames: { allow: "allowIps" } };

  test("keeps the original as cause", () => {
    const original = new TypeError("ipAllowlist: option allow[0] must be a string, got 1");
    const build = (): never => {
      throw original;
    };
    expect(() => withOwnOptionNames("payoutEndpoint", part, build)).toThrow(
      expect.objectContaining({
        message: "payoutEndpoint: option allowIps[0] must be a string, got 1",
        cause: original,
      }),
    );
  });

  test.each([
    ["an error of another factory", new TypeError("importVerificationKey: the key is small-order")],
    ["an error that is no TypeError", new Error("ipAllowlist: no memory")],
  ])("leaves %s as it is", (_name, original) => {
    const build = (): never => {
      throw original;
    };
    expect(() => withOwnOptionNames("payoutEndpoint", part, build)).toThrow(original);
  });
});
