import { describe, expect, test } from "@jest/globals";
import {
  basicAuthVerifier,
  webhookBasicAuth,
  type WebhookBasicAuthOptions,
} from "@countersign/webhook-basic-auth";

const username = "lender";
const password = "test-secret";
const one = { username, password };

describe("webhookBasicAuth as built", () => {
  test.each<[string, unknown, RegExp]>([
    ["no options", undefined, /options must be an object/],
    ["no credentials at all", {}, /give exactly one of/],
    ["unset variables for both", { username: undefined, password: undefined }, /give exactly one of/],
    ["two forms", { ...one, verify: () => true }, /give exactly one of/],
    ["a password beside a list", { password, credentials: [one] }, /give exactly one of/],
    ["an unknown option", { ...one, relam: "x" }, /unknown option relam;/],
    ["no password", { username }, /option password must be .* got undefined/],
    ["no username", { password }, /option username must be .* got undefined/],
    ["an empty username", { username: "", password }, /option username must be .* got an empty string/],
    ["an empty password", { username, password: "" }, /option password must be .* got an empty string/],
    ["null for the password", { username, password: null }, /option password must be/],
    ["a number for the password", { username, password: 1 }, /option password must be/],
    ["a colon in the username", { username: "a:b", password }, /option username must be .* holds a colon/],
    ["a line feed in the username", { username: "a\n", password }, /option username must be/],
    ["a line feed after the password", { username, password: `${password}\n` }, /option password must be/],
    ["a C1 control in the password", { username, password: "a\u0085" }, /option password must be/],
    ["a line separator in the password", { username, password: "a\u2028" }, /option password must be/],
    ["a lone surrogate in the password", { username, password: "\ud83c" }, /option password must be/],
    ["an empty list", { credentials: [] }, /option credentials must be .* an empty array/],
    ["no list", { credentials: one }, /option credentials must be/],
    ["an entry that is no object", { credentials: ["a:b"] }, /option credentials\[0\] must be an object/],
    // oxlint-disable-next-line no-sparse-arrays -- what a careless edit leaves behind
    ["a hole in the list", { credentials: [one, ,] }, /option credentials\[1\] must be/],
    [
      "an entry with an empty password",
      {
        credentials: [one, { username, password: "" }],
      },
      /option credentials\[1\]\.password must be/,
    ],
    [
      "an entry with another key",
      { credentials: [{ ...one, user: 1 }] },
      /unknown option credentials\[0\]\.user;/,
    ],
    ["one credential twice", { credentials: [one, one] }, /twice/],
    ["a verify that is none", { verify: true }, /option verify must be a function/],
    ["a time-out without verify", { ...one, timeoutMs: 5 }, /timeoutMs has a meaning/],
    ["a time-out of nothing", { verify: () => true, timeoutMs: 0 }, /option timeoutMs must be/],
    ["an empty realm", { ...one, realm: "" }, /option realm must be/],
    ["a quotation mark in the realm", { ...one, realm: 'a", x="' }, /option realm must be/],
    ["a backslash in the realm", { ...one, realm: "a\\" }, /option realm must be/],
    ["a line break in the realm", { ...one, realm: "a\r\nX: y" }, /option realm must be/],
    ["a realm outside ASCII", { ...one, realm: "\u00e9" }, /option realm must be/],
    ["a status that is a success", { ...one, status: 200 }, /option status must be/],
    ["a status of ours", { ...one, status: 500 }, /option status must be/],
  ])("throws on %s", (_name, options, message) => {
    const build = (): unknown => webhookBasicAuth(options as WebhookBasicAuthOptions);
    expect(build).toThrow(TypeError);
    expect(build).toThrow(/^webhookBasicAuth: /);
    expect(build).toThrow(message);
    expect(build).not.toThrow(/test-secret/);
  });

  test("has no compilable mix of forms", () => {
    const build = (): unknown =>
      webhookBasicAuth(
        // @ts-expect-error -- two forms at once
        { ...one, credentials: [one] },
      );
    expect(build).toThrow(TypeError);
  });

  test.each<[option: string | undefined, options: object, text: string]>([
    ["credentials", { credentials: [] }, "option credentials must be a non-empty array"],
    ["credentials", { credentials: [one, one] }, "option credentials has one username and password twice"],
    [
      "credentials[1].password",
      { credentials: [one, { username }] },
      "option credentials[1].password must be",
    ],
    ["credentials[0]", { credentials: ["a:b"] }, "option credentials[0] must be an object"],
    ["password", { username }, "option password must be"],
    ["timeoutMs", { ...one, timeoutMs: 5 }, "option timeoutMs has a meaning beside verify only"],
    [undefined, {}, "give exactly one of"],
  ])("belongs to an endpoint that was built with it: %s (%#)", (option, options, text) => {
    const build = (): unknown => basicAuthVerifier(options as WebhookBasicAuthOptions, "webhookEndpoint");
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
    expect(webhookBasicAuth(one).name).toBe("webhookBasicAuthMiddleware");
  });
});
