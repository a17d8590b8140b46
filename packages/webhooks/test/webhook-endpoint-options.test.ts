import { webhookEndpoint } from "@countersign/webhooks";
import { afterEach, describe, expect, test } from "@jest/globals";
import { credentials, optionsWith } from "./endpoint.ts";

const environment = process.env["NODE_ENV"];

afterEach(() => {
  process.env["NODE_ENV"] = environment;
});

describe("webhookEndpoint", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["an unknown option", { allowIp: ["192.0.2.1"] }, "unknown option allowIp;"],
    ["no credentials", { credentials: undefined }, "option credentials must be a non-empty array"],
    ["an empty list of credentials", { credentials: [] }, "option credentials must be a non-empty array"],
    ["credentials that are no list", { credentials: credentials[0] }, "option credentials must be"],
    [
      "an empty username",
      { credentials: [{ username: "", password: "x" }] },
      "option credentials[0].username",
    ],
    [
      "an empty password",
      { credentials: [{ username: "x", password: "" }] },
      "option credentials[0].password",
    ],
    [
      "a password that is not set",
      { credentials: [{ username: "x", password: undefined }] },
      "option credentials[0].password",
    ],
    [
      "no secrets",
      { secrets: undefined },
      "option secrets must be a non-empty array of secrets, or a function",
    ],
    ["an empty list of secrets", { secrets: [] }, "option secrets must be"],
    ["an empty secret", { secrets: ["test-secret", ""] }, "option secrets[1] must be"],
    ["one secret that is no list", { secrets: "test-secret" }, "option secrets must be"],
    ["a secret that its encoding cannot read", { secretEncoding: "hex" }, "option secrets[0] must be"],
    ["another encoding of secrets", { secretEncoding: "latin1" }, "option secretEncoding must be"],
    ["no encoding of signatures", { signatureEncodings: [] }, "option signatureEncodings must be"],
    ["a bad header name", { header: "X Payload" }, "option header must be"],
    ["the field of the password for the signature", { header: "Authorization" }, "option header must be"],
    ["a limit of 0", { limit: 0 }, "option limit must be"],
    ["a limit that is a word", { limit: "big" }, "option limit must be"],
    ["a bad realm", { realm: 'a"b' }, "option realm must be"],
    ["empty allowIps", { allowIps: [] }, "option allowIps must be"],
    ["allowIps that admit everybody", { allowIps: ["0.0.0.0/0"] }, "option allowIps admits every"],
    ["an unknown option of https", { https: { allowHttp: true } }, "unknown option allowHttp;"],
    ["https that is no object", { https: true }, "option https must be an object"],
    ["a status of https that is no refusal", { https: { status: 200 } }, "option https.status must be"],
    ["a hide that is no boolean", { hide: "yes" }, "option hide must be true or false"],
    ["an onReject that is no function", { onReject: {} }, "option onReject must be a function"],
    [
      "no handler",
      { handler: undefined },
      "option handler must be what createWebhookHandler() returned, got undefined",
    ],
    [
      "a handler that is a function",
      { handler: () => undefined },
      "option handler must be what createWebhookHandler()",
    ],
    ["a handler that is the map of events", { handler: { on: () => undefined } }, "option handler must be"],
  ])("refuses %s", (_name, overrides, message) => {
    const build = (): unknown => webhookEndpoint({ ...optionsWith(), ...overrides });
    expect(build).toThrow(TypeError);
    expect(build).toThrow(
      expect.objectContaining({ message: expect.stringContaining(`webhookEndpoint: ${message}`) }),
    );
  });

  test.each([undefined, null, [], "options"])("refuses %p as options", (options) => {
    expect(() => webhookEndpoint(options as never)).toThrow(/^webhookEndpoint: options must be an object/);
  });

  test("refuses plain http in production", () => {
    const options = optionsWith();
    process.env["NODE_ENV"] = "production";
    expect(() => webhookEndpoint(options)).toThrow(/^webhookEndpoint: option https\.dangerouslyAllowHttp/);
    expect(() => webhookEndpoint({ ...options, https: undefined })).not.toThrow();
  });

  test("shows no secret and no password in a message", () => {
    const messages = [
      { secrets: ["test-secret", "test-secret"] },
      { credentials: [...credentials, ...credentials] },
    ].map((overrides) => {
      try {
        webhookEndpoint(optionsWith(overrides));
        return "built";
      } catch (error) {
        return (error as Error).message;
      }
    });
    expect(messages).toEqual([
      "webhookEndpoint: option secrets has one secret twice",
      "webhookEndpoint: option credentials has one username and password twice",
    ]);
  });

  test("accepts undefined for every optional member, and leaves its options as they are", () => {
    const options = Object.freeze(
      optionsWith({
        https: undefined,
        allowIps: undefined,
        hide: undefined,
        limit: undefined,
        header: undefined,
        secretEncoding: undefined,
        signatureEncodings: undefined,
        realm: undefined,
        onReject: undefined,
      }),
    );
    expect(webhookEndpoint(options)).toHaveLength(2);
  });
});
