import { webhookEndpoint } from "countersign/webhooks";
import { afterEach, describe, expect, test } from "@jest/globals";
import { credentials, optionsWith } from "./endpoint.ts";

const environment = process.env["NODE_ENV"];

afterEach(() => {
  process.env["NODE_ENV"] = environment;
});

describe("webhookEndpoint", () => {
  const oneOf = "give exactly one of username with password, credentials, and verify";
  const wrongHandler = "option handler must be what createWebhookHandler() returned";

  test.each<[string, Record<string, unknown>, string]>([
    ["no basicAuth", { basicAuth: undefined }, "option basicAuth must be an object such as { username"],
    ["no hmac", { hmac: undefined }, "option hmac must be an object such as { secret }"],
    ["a status of a check", { hmac: { status: 418 } }, "option hmac.status cannot be set here"],
    ["an unknown option", { allowIp: ["192.0.2.1"] }, "unknown option allowIp;"],
    ["no credentials", { basicAuth: { credentials: undefined } }, `option basicAuth: ${oneOf}`],
    ["no secrets", { hmac: { secrets: undefined } }, "option hmac: give exactly one of secret and secrets"],
    ["an empty secret", { hmac: { secrets: ["test-secret", ""] } }, "option hmac.secrets[1] must be"],
    ["an empty list of addresses", { addresses: { allow: [] } }, "option addresses.allow must be"],
    ["an unknown option of https", { https: { allowHttp: true } }, "unknown option https.allowHttp;"],
    ["https that is no object", { https: true }, "option https must be an object"],
    ["a status of https that is no refusal", { https: { status: 200 } }, "option https.status must be"],
    ["a hide that is no boolean", { hide: "yes" }, "option hide must be true or false"],
    ["an onReject that is no function", { onReject: {} }, "option onReject must be a function"],
    ["no handler", { handler: undefined }, `${wrongHandler}, got undefined`],
    ["a handler that is a function", { handler: () => undefined }, wrongHandler],
    ["a handler that is the map of events", { handler: { on: () => undefined } }, "option handler must be"],
  ])("refuses %s", (_name, overrides, message) => {
    const build = (): unknown => webhookEndpoint(optionsWith(overrides));
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
      { hmac: { secrets: ["test-secret", "test-secret"] } },
      { basicAuth: { credentials: [...credentials, ...credentials] } },
    ].map((overrides) => {
      try {
        webhookEndpoint(optionsWith(overrides));
        return "built";
      } catch (error) {
        return (error as Error).message;
      }
    });
    expect(messages).toEqual([
      "webhookEndpoint: option hmac.secrets has one secret twice",
      "webhookEndpoint: option basicAuth.credentials has one username and password twice",
    ]);
  });

  test("accepts undefined for every optional member, and leaves its options as they are", () => {
    const options = Object.freeze(
      optionsWith({
        addresses: undefined,
        basicAuth: { realm: undefined },
        hmac: { limit: undefined, scheme: undefined },
        https: undefined,
        hide: undefined,
        onReject: undefined,
      }),
    );
    expect(webhookEndpoint(options)).toHaveLength(2);
  });
});
