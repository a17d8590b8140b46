import { addressAdmission, admitAddress, expressAdmission } from "@countersign/ip-allowlist";
import { describe, expect, test } from "@jest/globals";

describe("admitAddress", () => {
  test("admits what is in the list", () => {
    expect(() => admitAddress("192.0.2.7", ["192.0.2.0/24"])).not.toThrow();
    expect(() => addressAdmission({ allow: ["192.0.2.0/24"] })("192.0.2.7")).not.toThrow();
  });

  test.each<[string, unknown]>([
    ["ip-not-allowed", "198.51.100.1"],
    ["ip-unknown", "localhost"],
    ["ip-unknown", undefined],
    ["ip-unknown", null],
    ["ip-unknown", ["192.0.2.7"]],
  ])("refuses with %s: %j", (code, address) => {
    const refusal = expect.objectContaining({ status: 403, code });
    expect(() => admitAddress(address as string, ["192.0.2.0/24"], 403)).toThrow(refusal);
  });

  test("throws on an empty list", () => {
    expect(() => admitAddress("192.0.2.7", [])).toThrow(TypeError);
  });
});

describe.each([
  ["addressAdmission", addressAdmission],
  ["expressAdmission", expressAdmission],
])("%s of an endpoint", (_name, admission) => {
  test.each<[option: string | undefined, options: object, text: string]>([
    ["addresses.allow", { allow: [] }, "option addresses.allow must be an array"],
    ["addresses.allow", { allow: ["::/0"] }, "option addresses.allow admits every address"],
    ["addresses.allow[1]", { allow: ["192.0.2.7", "x"] }, "option addresses.allow[1] must be an IPv4"],
    ["addresses.status", { allow: ["192.0.2.7"], status: 200 }, "option addresses.status must be"],
    ["addresses.deny", { allow: ["192.0.2.7"], deny: [] }, "unknown option addresses.deny;"],
  ])("names the option below the one that holds it: %s (%#)", (option, options, text) => {
    const owner = { factory: "payoutEndpoint", holder: "addresses" };
    expect(() => admission(options as { allow: string[] }, owner)).toThrow(
      expect.objectContaining({
        name: "TypeError",
        factory: "payoutEndpoint",
        option,
        message: expect.stringContaining(`payoutEndpoint: ${text}`),
      }),
    );
  });
});
