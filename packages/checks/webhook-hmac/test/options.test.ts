import { describe, expect, test } from "@jest/globals";
import { payloadVerifier, webhookHmac, type WebhookHmacOptions } from "@countersign/webhook-hmac";

const secret = "test-secret";
const takenHeaders =
  "authorization connection content-digest content-encoding content-length content-type cookie expect host keep-alive " +
  "proxy-authorization te trailer transfer-encoding upgrade";

const own = (members: object): object => ({ header: "X-Payload-Signature", ...members });
const base64 = own({ secretEncoding: "base64" });
const hex = own({ secretEncoding: "hex" });
const badSecret = /option secret must be/;
const badHeader = /option scheme\.header must be/;
const badEncodings = /option scheme\.signatureEncodings must be/;

describe("webhookHmac as built", () => {
  test.each<[string, unknown, RegExp]>([
    ["no options", undefined, /options must be an object/],
    ["no secret at all", {}, /give exactly one of secret and secrets/],
    ["an unset variable", { secret: undefined }, /give exactly one of secret and secrets/],
    ["both forms", { secret, secrets: [secret] }, /give exactly one of secret and secrets/],
    ["an unknown option", { secret, encoding: "hex" }, /unknown option encoding;/],
    ["an empty secret", { secret: "" }, /option secret must be .* an empty string/],
    ["a blank secret", { secret: " \n" }, badSecret],
    [
      "a line feed after the secret",
      { secret: "test-secret\n" },
      /got one that ends with a line feed, .*trimEnd/,
    ],
    ["a line feed after a secret of a list", { secrets: [secret, "old\r\n"] }, /option secrets\[1\] must be/],
    ["a tab before the secret", { secret: "\ttest-secret" }, /got one that holds a control character/],
    ["a byte order mark before the secret", { secret: "\ufefftest-secret" }, /begins with a byte order mark/],
    ["a line separator in the secret", { secret: "test\u2028secret" }, badSecret],
    [
      "a line feed after a secret with a prefix",
      { secret: "whsec_dGVzdA==\n", scheme: "standard-webhooks" },
      /ends with a line feed/,
    ],
    [
      "white space after a secret with a prefix",
      { secret: "whsec_dGVzdA== ", scheme: "svix" },
      /base64 .* without white space around it/,
    ],
    [
      "a version before the prefix",
      { secret: "v1,whsec_dGVzdA==", scheme: "standard-webhooks" },
      /must have "whsec_" at its beginning alone/,
    ],
    [
      "two secrets with prefixes in one text",
      { secret: "whsec_dGVzdA== whsec_dGVzdB==", scheme: "standard-webhooks" },
      /"whsec_" at its beginning alone.*as a list/,
    ],
    ["null for the secret", { secret: null }, badSecret],
    ["bytes for the secret", { secret: Buffer.from(secret) }, badSecret],
    ["a lone surrogate in the secret", { secret: "test-secret\ud83c" }, badSecret],
    ["no base64", { secret: "test-secret", scheme: base64 }, /option secret must be .*base64/],
    ["base64 without padding", { secret: "dGVzdC1zZWNyZXQ", scheme: base64 }, badSecret],
    ["base64url", { secret: "_-8=", scheme: base64 }, badSecret],
    ["base64 with a line feed", { secret: "dGVzdA==\n", scheme: base64 }, badSecret],
    ["no hex", { secret: "test-secret", scheme: hex }, /option secret must be .*hexadecimal/],
    ["half a byte of hex", { secret: "abc", scheme: hex }, badSecret],
    ["hex with a prefix", { secret: "0xab", scheme: hex }, badSecret],
    ["an empty secret in hex", { secret: "", scheme: hex }, badSecret],
    ["zero bytes, which make the empty key", { secret: "\0\0" }, badSecret],
    ["zero bytes in hex", { secret: "0000", scheme: hex }, /option secret must be .*zeros/],
    ["zero bytes in base64", { secret: "AAAA", scheme: base64 }, /option secret must be .*zeros/],
    ...["header", "algorithm", "prefix", "secretEncoding", "signatureEncodings"].map(
      (name): [string, unknown, RegExp] => [
        `${name}, which is a member of the scheme`,
        { secret, [name]: "sha256" },
        new RegExp(`unknown option ${name};`),
      ],
    ),
    ["an empty list", { secrets: [] }, /option secrets must be .* an empty array/],
    ["one text for the list", { secrets: secret }, /option secrets must be/],
    ["an empty secret in the list", { secrets: [secret, ""] }, /option secrets\[1\] must be/],
    // oxlint-disable-next-line no-sparse-arrays -- what a careless edit leaves behind
    ["a hole in the list", { secrets: [secret, , "other"] }, /option secrets\[1\] must be/],
    ["one secret twice", { secrets: [secret, "other", secret] }, /twice/],
    ["one secret in two cases of hex", { secrets: ["ab", "AB"], scheme: hex }, /twice/],
    ["an empty header", { secret, scheme: { header: "" } }, badHeader],
    ["a colon in the header", { secret, scheme: { header: "X-Signature:" } }, badHeader],
    ["a number for the header", { secret, scheme: { header: 1 } }, badHeader],
    ["the field of basic authentication", { secret, scheme: { header: "Authorization" } }, badHeader],
    ...takenHeaders
      .split(" ")
      .map((header): [string, unknown, RegExp] => [
        `the field ${header}`,
        { secret, scheme: { header } },
        /option scheme\.header must be .* without another use/,
      ]),
    [
      "an unknown secret encoding",
      { secret, scheme: own({ secretEncoding: "latin1" }) },
      /option scheme\.secretEncoding must be/,
    ],
    [
      "a name that every object has",
      { secret, scheme: own({ secretEncoding: "constructor" }) },
      /option scheme\.secretEncoding must be/,
    ],
    ["no signature encodings", { secret, scheme: own({ signatureEncodings: [] }) }, badEncodings],
    [
      "an unknown signature encoding",
      { secret, scheme: own({ signatureEncodings: ["base64url"] }) },
      badEncodings,
    ],
    ["an encoding twice", { secret, scheme: own({ signatureEncodings: ["hex", "hex"] }) }, badEncodings],
    ["one encoding without a list", { secret, scheme: own({ signatureEncodings: "hex" }) }, badEncodings],
    ["a limit in words", { secret, limit: "unlimited" }, /option limit must be/],
    ["a limit of nothing", { secret, limit: 0 }, /option limit must be/],
    ["a time-out without a function", { secret, timeoutMs: 5 }, /timeoutMs has a meaning/],
    ["a time-out of nothing", { secrets: () => [secret], timeoutMs: 0 }, /option timeoutMs must be/],
    ["a status that is a success", { secret, status: 204 }, /option status must be/],
    ["a status of ours", { secret, status: 503 }, /option status must be/],
  ])("throws on %s", (_name, options, message) => {
    const build = (): unknown => webhookHmac(options as WebhookHmacOptions);
    expect(build).toThrow(TypeError);
    expect(build).toThrow(/^webhookHmac: /);
    expect(build).toThrow(message);
    expect(build).not.toThrow(/test-secret|dGVzd/);
  });

  test.each<[option: string | undefined, options: object, text: string]>([
    ["secrets", { secrets: [] }, "option secrets must be a non-empty array"],
    ["secrets", { secrets: [secret, secret] }, "option secrets has one secret twice"],
    ["secrets[1]", { secrets: [secret, ""] }, "option secrets[1] must be"],
    ["secret", { secret: "x", scheme: hex }, "option secret must be"],
    ["timeoutMs", { secret, timeoutMs: 5 }, "option timeoutMs has a meaning beside a secrets function only"],
    ["scheme.header", { secret, scheme: { header: "Host" } }, "option scheme.header must be"],
    [undefined, {}, "give exactly one of"],
  ])("belongs to an endpoint that was built with it: %s (%#)", (option, options, text) => {
    const build = (): unknown => payloadVerifier(options as WebhookHmacOptions, "webhookEndpoint");
    expect(build).toThrow(
      expect.objectContaining({
        name: "TypeError",
        factory: "webhookEndpoint",
        option,
        message: expect.stringContaining(`webhookEndpoint: ${text}`),
      }),
    );
  });

  test("returns a middleware that stack traces name", () => {
    expect(webhookHmac({ secret }).name).toBe("webhookHmacMiddleware");
  });
});
