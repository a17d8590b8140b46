import { describe, expect, test } from "@jest/globals";
import type { Environment } from "../src/environment.ts";
import type { SettingError } from "../src/setting-error.ts";
import { readWebhook } from "../src/webhook.ts";
import { refusalOf } from "./setting-files.ts";

// TEST CREDENTIALS.
const credentials: Environment = {
  WEBHOOK_USERNAME: "service",
  WEBHOOK_PASSWORD: "test-password",
  WEBHOOK_SECRETS: "test-secret",
};

const errorOf = (env: Environment): SettingError => refusalOf(() => readWebhook({ ...credentials, ...env }));

describe("readWebhook", () => {
  test("finds no webhook route where nothing of it is set", () => {
    expect(readWebhook({})).toBeUndefined();
    expect(readWebhook({ WEBHOOK_ALLOW_HTTP: "1" })).toBeUndefined();
  });

  test("takes path and credentials", () => {
    expect(readWebhook({ ...credentials, WEBHOOK_PATH: "/hooks/8d7f" })).toEqual({
      path: "/hooks/8d7f",
      isPathGenerated: false,
      username: "service",
      password: "test-password",
      secrets: ["test-secret"],
      allowHttp: false,
    });
  });

  test("makes up a path that nobody can guess, another one each time", () => {
    const [one, other] = [readWebhook(credentials), readWebhook(credentials)];
    expect(one?.path).toMatch(/^\/[0-9a-f]{32,}$/);
    expect(one?.isPathGenerated).toBe(true);
    expect(one?.path).not.toBe(other?.path);
  });

  test.each<[string, Environment, object]>([
    ["several secrets", { WEBHOOK_SECRETS: "test-one,test-two" }, { secrets: ["test-one", "test-two"] }],
    ["a password with a colon", { WEBHOOK_PASSWORD: "test:password" }, { password: "test:password" }],
    ["a username beyond ASCII", { WEBHOOK_USERNAME: "sérvice" }, { username: "sérvice" }],
    ["plain http", { WEBHOOK_ALLOW_HTTP: "1" }, { allowHttp: true }],
    ["https alone", { WEBHOOK_ALLOW_HTTP: "0", NODE_ENV: "production" }, { allowHttp: false }],
  ])("takes %s", (_name, env, expected) => {
    expect(readWebhook({ ...credentials, ...env })).toMatchObject(expected);
  });

  test.each<[string, string, Environment]>([
    ["WEBHOOK_USERNAME", "only a password", { WEBHOOK_PASSWORD: "test-password" }],
    ["WEBHOOK_PASSWORD", "no password", { WEBHOOK_USERNAME: "service", WEBHOOK_SECRETS: "test-secret" }],
    ["WEBHOOK_SECRETS", "no secret", { WEBHOOK_USERNAME: "service", WEBHOOK_PASSWORD: "test-password" }],
    ["WEBHOOK_USERNAME", "a path alone", { WEBHOOK_PATH: "/hooks/8d7f" }],
  ])("asks for %s where there is %s", (variable, _name, env) => {
    const none = { WEBHOOK_USERNAME: undefined, WEBHOOK_PASSWORD: undefined, WEBHOOK_SECRETS: undefined };
    const error = errorOf({ ...none, ...env });
    expect(error.variable).toBe(variable);
    expect(error.message).toMatch(/expected a value, because WEBHOOK_\w+.* is set \(.*: all or none\)$/);
  });

  test.each<[string, string, string, RegExp]>([
    ["nothing", "WEBHOOK_PATH", "", /expected a path such as/],
    ["a relative path", "WEBHOOK_PATH", "hooks", /expected a path such as/],
    ["a pattern", "WEBHOOK_PATH", "/:any", /expected a path such as/],
    ["a path of the platform itself", "WEBHOOK_PATH", "/inspect/state", /expected a path other than/],
    ["the path that shows keys", "WEBHOOK_PATH", "/inspect/keys", /expected a path other than/],
    ["nothing", "WEBHOOK_USERNAME", "", /not blank/],
    ["white space", "WEBHOOK_USERNAME", " ", /not blank/],
    ["a colon", "WEBHOOK_USERNAME", "ser:vice", /holds a colon/],
    ["a control character", "WEBHOOK_USERNAME", "ser\u0007vice", /control characters/],
    ["nothing", "WEBHOOK_PASSWORD", "", /not blank/],
    ["white space", "WEBHOOK_PASSWORD", "\t", /not blank/],
    ["a line break", "WEBHOOK_PASSWORD", "test\npassword", /control characters/],
    ["nothing", "WEBHOOK_SECRETS", "", /none of them empty/],
    ["an empty entry", "WEBHOOK_SECRETS", "test-one,,test-two", /none of them empty/],
    ["a comma at the end", "WEBHOOK_SECRETS", "test-one,", /none of them empty/],
    ["white space beside a comma", "WEBHOOK_SECRETS", "test-one, test-two", /white space around/],
    ["line ends for commas", "WEBHOOK_SECRETS", "test-one\ntest-two", /control characters/],
    ["a tab inside a secret", "WEBHOOK_SECRETS", "test\tone", /control characters/],
    ["a secret twice", "WEBHOOK_SECRETS", "test-one,test-one", /different secrets/],
    ["nothing", "WEBHOOK_ALLOW_HTTP", "", /expected 1 or 0/],
    ["a word", "WEBHOOK_ALLOW_HTTP", "yes", /expected 1 or 0/],
  ])("refuses %s as %s", (_name, variable, value, message) => {
    const error = errorOf({ [variable]: value });
    expect(error.variable).toBe(variable);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain("\n");
    expect(error.message).not.toMatch(/test-|vice/);
  });

  test("refuses plain http in production", () => {
    const error = errorOf({ WEBHOOK_ALLOW_HTTP: "1", NODE_ENV: "production" });
    expect(error.message).toMatch(/^WEBHOOK_ALLOW_HTTP: expected 0 in production/);
  });
});
