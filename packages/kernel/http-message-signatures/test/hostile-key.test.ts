import { describe, expect, test } from "@jest/globals";
import { importVerificationKey, verify, type VerifyOptions } from "@countersign/http-message-signatures";
import { key, now, publicKey, signByHand, signedRequest, strict, verdictOf } from "./hand-signer.ts";
import { good, withFields, withNote, withParameters } from "./hostile-rows.ts";

describe("algorithm and key", () => {
  test("refuses the record of another keyid", () => {
    const keys = () => importVerificationKey("other", publicKey);
    expect(verdictOf(() => verify(signedRequest(), { ...strict, keys }))).toBe("key-mismatch");
  });

  test.each([null, undefined])("takes %s for an unknown keyid", (nothing) => {
    expect(verdictOf(() => verify(signedRequest(), { ...strict, keys: () => nothing }))).toBe("key-unknown");
  });

  test("refuses a record of another algorithm than alg", () => {
    const algorithms = ["ed25519", "rsa-pss-sha512"] as unknown as readonly "ed25519"[];
    const message = withParameters({ alg: '"rsa-pss-sha512"' });
    expect(verdictOf(() => verify(message, { ...strict, algorithms }))).toBe("alg-mismatch");
  });

  test("refuses a record that was not vetted, also one of small order under which anybody can sign", () => {
    const keys = () => ({ ...key });
    expect(verdictOf(() => verify(signedRequest(), { ...strict, keys }))).toBe("key-mismatch");
  });

  test("asks for a key once, and not before everything cheaper fits", () => {
    const asked: string[] = [];
    const keys = (keyid: string) => {
      asked.push(keyid);
      return key;
    };
    const other = signByHand({ label: "sig2", parameters: { alg: '"none"', keyid: '"other"' } });
    const message = withFields(`${other.input}, ${good.input}`, `${other.signature}, ${good.signature}`);
    verify(message, { ...strict, keys });
    expect(asked).toEqual(["test-key"]);
    expect(verdictOf(() => verify(message, { ...strict, keys, now: now + 61 }))).toBe("signature-expired");
    expect(asked).toEqual(["test-key"]);
  });
});

describe("tag", () => {
  const required = { require: ["payout", "refund"] };
  test.each<[string, VerifyOptions["tag"], string | undefined, string]>([
    ["one with a space behind it", required, '"payout "', "tag-mismatch"],
    ["an empty one where one is required", required, '""', "tag-mismatch"],
    ["any, where no value can be", { require: [] }, '"payout"', "tag-mismatch"],
    ["one that is required and excluded", { ...required, exclude: ["payout"] }, '"payout"', "tag-mismatch"],
  ])("%s: %j and %s give %s", (_title, tag, value, verdict) => {
    expect(verdictOf(() => verify(withParameters({ tag: value }), { ...strict, tag }))).toBe(verdict);
  });

  test("is a fault of the caller's own where one string stands for a list", () => {
    for (const tag of [{ require: "payout" }, { exclude: "payout" }] as unknown as VerifyOptions["tag"][]) {
      expect(() => verify(withParameters({ tag: '"pay"' }), { ...strict, tag })).toThrow(TypeError);
    }
  });
});

test("verify takes linear time on a long run of spaces inside a field", () => {
  const spaces = " ".repeat(1_000_000);
  const message = withNote(`a${spaces}b`, `a${spaces}b`);
  expect(verdictOf(() => verify(message, strict))).toBe("accepted");
  expect(verdictOf(() => verify(withFields(`a${spaces}b`, good.signature), strict))).toBe("field-limit");
});
