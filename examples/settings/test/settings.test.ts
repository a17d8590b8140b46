import { describe, expect, test } from "@jest/globals";
import type { SettingError } from "../src/setting-error.ts";
import type { Environment } from "../src/environment.ts";
import { readSettings } from "../src/settings.ts";
import { makeTestKey } from "../../platform/test/signer.ts";
import { file, refusalOf } from "./setting-files.ts";

const good: Environment = { PAYOUT_KEYS: file("keys.json", { k1: makeTestKey("k1").publicKeyPem }) };

const errorOf = (env: Environment): SettingError => refusalOf(() => readSettings({ ...good, ...env }));

describe("readSettings with nothing but keys", () => {
  test("has the documented defaults", () => {
    const { keys, ...settings } = readSettings(good);
    expect(settings).toEqual({
      port: 3000,
      host: "127.0.0.1",
      store: { kind: "sqlite", file: "./data/platform.db" },
      payoutPath: "/api/v1/transaction",
      allowedIps: ["127.0.0.1", "::1"],
      trustProxy: [],
      pathPrefix: undefined,
      referenceField: undefined,
      businesses: undefined,
      confirmationUrl: undefined,
      confirmationApiKey: undefined,
      webhook: undefined,
      tls: undefined,
      inspect: false,
      logLevel: "info",
    });
    expect(keys).toEqual({ kind: "files", path: good["PAYOUT_KEYS"] });
  });
});

describe("readSettings", () => {
  const confirmation = new URL("https://a.example/b");
  test.each<[string, Environment, object]>([
    ["any free port", { PORT: "0" }, { port: 0 }],
    ["the highest port", { PORT: "65535" }, { port: 65_535 }],
    ["an IPv6 host", { HOST: "::1" }, { host: "::1" }],
    ["memory", { STORE_URL: "memory:" }, { store: { kind: "memory" } }],
    ["an absolute file", { STORE_URL: "sqlite:/tmp/a.db" }, { store: { kind: "sqlite", file: "/tmp/a.db" } }],
    ["a path with upper case", { PAYOUT_PATH: "/Pay/v2.1" }, { payoutPath: "/Pay/v2.1" }],
    [
      "spaces around commas",
      { PAYOUT_ALLOWED_IPS: "10.0.0.0/8 , ::1" },
      { allowedIps: ["10.0.0.0/8", "::1"] },
    ],
    ["proxies as CIDRs", { TRUST_PROXY: "10.0.0.0/8,fd00::/8" }, { trustProxy: ["10.0.0.0/8", "fd00::/8"] }],
    ["a prefix", { PATH_PREFIX: "/payments" }, { pathPrefix: "/payments" }],
    ["a reference field", { REFERENCE_FIELD: "remittance_info" }, { referenceField: "remittance_info" }],
    ["a confirmation URL", { CONFIRMATION_URL: confirmation.href }, { confirmationUrl: confirmation }],
    [
      "a confirmation URL with port and query, and its API key",
      { CONFIRMATION_URL: "http://127.0.0.1:4000/a?b=c", CONFIRMATION_API_KEY: "key" },
      { confirmationUrl: new URL("http://127.0.0.1:4000/a?b=c"), confirmationApiKey: "key" },
    ],
    ["inspection", { PLATFORM_INSPECT: "1" }, { inspect: true }],
    ["no inspection", { PLATFORM_INSPECT: "0" }, { inspect: false }],
    ["an inspector", { INSPECTOR_PORT: "4100" }, { inspectorPort: 4100 }],
    ["no inspector", {}, { inspectorPort: undefined }],
    ["a quiet log", { LOG_LEVEL: "silent" }, { logLevel: "silent" }],
  ])("takes %s", (_name, env, expected) => {
    expect(readSettings({ ...good, ...env })).toMatchObject(expected);
  });

  test.each<[string, string, string, RegExp]>([
    ["a word", "PORT", "abc", /^PORT: expected an integer from 0 to 65535, got "abc"$/],
    ["a port above the last", "PORT", "65536", /integer from 0 to 65535/],
    ["a negative port", "PORT", "-1", /integer/],
    ["a fraction", "PORT", "80.5", /integer/],
    ["hexadecimal", "PORT", "0x50", /integer/],
    ["white space", "PORT", " 80", /integer/],
    ["nothing", "PORT", "", /integer from 0 to 65535, got ""$/],
    ["nothing", "HOST", "", /host name or an IP address/],
    ["a URL", "HOST", "http://localhost", /host name or an IP address/],
    ["postgres without slashes", "STORE_URL", "postgres:db", /^STORE_URL: expected a postgres:\/\/ URL/],
    ["a # in a password", "STORE_URL", "postgres://u:1#2@db/x", /percent-encoded$/],
    ["a slash in a password", "STORE_URL", "postgres://u:a/b@db/x", /percent-encoded$/],
    ["a slash behind digits of a password", "STORE_URL", "postgres://u:1/b@db/x", /percent-encoded$/],
    ["a question mark in a password", "STORE_URL", "postgres://u:1?b@db/x", /percent-encoded$/],
    ["a % in a password", "STORE_URL", "postgres://u:1%@db/x", /percent-encoded$/],
    ["bytes that are no text in a password", "STORE_URL", "postgres://u:%ff@db/x", /percent-encoded$/],
    ["a % in a password", "STORE_URL", "redis://:1%@db", /percent-encoded$/],
    ["a name for the database of Redis", "STORE_URL", "redis://db/payouts", /number of its database/],
    ["a blank path", "STORE_URL", "sqlite: ", /sqlite:<path>/],
    ["redis without a host", "STORE_URL", "redis:///", /^STORE_URL: expected a redis:\/\/ or rediss:/],
    ["redis without slashes", "STORE_URL", "redis:6379", /a redis:\/\/ or rediss:\/\/ URL/],
    ["a # in a password", "STORE_URL", "rediss://:1#2@db", /percent-encoded$/],
    ["a schema of SQLite", "STORE_SCHEMA", "public", /no value, because STORE_URL is sqlite:$/],
    ["a key prefix of SQLite", "KEY_PREFIX", "x", /no value, because STORE_URL is sqlite:$/],
    ["an unknown scheme", "STORE_URL", "mysql://db", /sqlite:<path> or memory:/],
    ["a path alone", "STORE_URL", "./data/platform.db", /sqlite:<path> or memory:/],
    ["no path", "STORE_URL", "sqlite:", /sqlite:<path>/],
    ["SQLite's own name of memory", "STORE_URL", "sqlite::memory:", /memory:/],
    ["memory with a name", "STORE_URL", "memory:x", /memory:/],
    ["a relative path", "PAYOUT_PATH", "api", /^PAYOUT_PATH: expected a path/],
    ["the root", "PAYOUT_PATH", "/", /a path/],
    ["a trailing slash", "PAYOUT_PATH", "/a/", /a path/],
    ["an empty segment", "PAYOUT_PATH", "/a//b", /a path/],
    ["a dot segment", "PAYOUT_PATH", "/a/../b", /a path/],
    ["a parameter", "PAYOUT_PATH", "/:id", /a path/],
    ["a wildcard", "PAYOUT_PATH", "/*a", /a path/],
    ["an escape", "PAYOUT_PATH", "/%61", /a path/],
    ["a query", "PAYOUT_PATH", "/a?b", /a path/],
    ["a path of the platform itself", "PAYOUT_PATH", "/healthz", /other than \/healthz/],
    ["nothing", "PAYOUT_ALLOWED_IPS", "", /: expected a comma list of IP addresses or CIDR ranges/],
    ["an empty entry", "PAYOUT_ALLOWED_IPS", "127.0.0.1,", /comma list/],
    ["a host name", "PAYOUT_ALLOWED_IPS", "localhost", /comma list/],
    ["a star", "PAYOUT_ALLOWED_IPS", "*", /comma list/],
    ["everybody", "PAYOUT_ALLOWED_IPS", "0.0.0.0/0", /comma list/],
    ["host bits", "PAYOUT_ALLOWED_IPS", "10.0.0.1/8", /comma list/],
    ["true", "TRUST_PROXY", "true", /^TRUST_PROXY: expected a comma list/],
    ["a hop count", "TRUST_PROXY", "2", /comma list/],
    ["a name", "TRUST_PROXY", "loopback", /comma list/],
    ["a prefix that is too long", "TRUST_PROXY", "10.0.0.0/33", /comma list/],
    ["everybody", "TRUST_PROXY", "::/0", /comma list/],
    ["nothing", "TRUST_PROXY", "", /comma list/],
    ["a relative prefix", "PATH_PREFIX", "payments", /^PATH_PREFIX: expected a path that begins with \//],
    ["a trailing slash", "PATH_PREFIX", "/payments/", /does not end with it/],
    ["nothing", "PATH_PREFIX", "", /begins with \//],
    ["nothing", "REFERENCE_FIELD", "", /^REFERENCE_FIELD: expected the name of a body field/],
    ["a sentence", "REFERENCE_FIELD", "the text", /body field/],
    ["a field with another meaning", "REFERENCE_FIELD", "amount", /^REFERENCE_FIELD: expected .* other than/],
    ["a word", "CONFIRMATION_URL", "here", /^CONFIRMATION_URL: expected a URL such as https:\/\/host\/path/],
    ["nothing", "CONFIRMATION_URL", "", /http: or https:/],
    ["a file", "CONFIRMATION_URL", "file:///etc/passwd", /http: or https:/],
    ["a host without a scheme", "CONFIRMATION_URL", "localhost:4000/x", /http: or https:/],
    ["no host", "CONFIRMATION_URL", "http:///x", /such as https:\/\/host\/path/],
    ["no slashes", "CONFIRMATION_URL", "http:a.example/x", /such as https:\/\/host\/path/],
    ["backslashes", "CONFIRMATION_URL", String.raw`http://a.example\x`, /such as https:\/\/host\/path/],
    ["white space around it", "CONFIRMATION_URL", " http://a.example/x ", /white space/],
    ["http beyond loopback", "CONFIRMATION_URL", "http://a.example/x", /http: to a loopback host alone/],
    ["port 0", "CONFIRMATION_URL", "https://a.example:0/x", /such as https:\/\/host\/path/],
    [
      "a port above the last",
      "CONFIRMATION_URL",
      "https://a.example:70000/x",
      /such as https:\/\/host\/path/,
    ],
    ["a fragment", "CONFIRMATION_URL", "https://a.example/x#y", /without .*fragment/],
    ["credentials", "CONFIRMATION_URL", "https://u:p@a.example", /without user name/],
    ["a password alone", "CONFIRMATION_URL", "https://:p@a.example", /without user name, password/],
    ["a key without a URL", "CONFIRMATION_API_KEY", "k", /no value, because CONFIRMATION_URL is not set$/],
    ["nothing", "CONFIRMATION_API_KEY", "", /1 to 256 printable ASCII/],
    ["a line end", "CONFIRMATION_API_KEY", "hunter2\n", /ASCII characters without spaces$/],
    ["a word", "PLATFORM_INSPECT", "yes", /^PLATFORM_INSPECT: expected 1 or 0, got "yes"$/],
    ["nothing", "PLATFORM_INSPECT", "", /1 or 0/],
    ["a word", "INSPECTOR_PORT", "yes", /an integer from 0 to 65535, got "yes"$/],
    ["an unknown level", "LOG_LEVEL", "loud", /^LOG_LEVEL: expected one of trace, debug, info/],
    ["no file", "BUSINESSES", "/nowhere/b.json", /^BUSINESSES: expected the path of a JSON file .*ENOENT/],
  ])("refuses %s as %s", (_name, variable, value, message) => {
    const error = errorOf({ [variable]: value });
    expect(error.message).toMatch(message);
    expect(error.variable).toBe(variable);
    expect(error.message).not.toContain("\n");
  });

  const redis = "redis://user:hunter2@db";
  const postgres = "postgres://user:hunter2@db/platform";
  const both = { STORE_URL: redis, DATABASE_URL: postgres };
  const local = "postgresql:///db?host=/run/postgresql";
  const inPostgres = { kind: "postgres", url: postgres, schema: "public", storesSchema: undefined };
  test.each<[string, Environment, object]>([
    ["PostgreSQL for everything", { STORE_URL: postgres }, { ...inPostgres, variable: "STORE_URL" }],
    [
      "its longer name, and a schema",
      { STORE_URL: local, STORE_SCHEMA: "pay_1" },
      { kind: "postgres", url: local, schema: "pay_1", storesSchema: "pay_1", variable: "STORE_URL" },
    ],
    [
      "Redis, with PostgreSQL for the payouts",
      both,
      {
        kind: "redis",
        url: redis,
        keyPrefix: "countersign",
        payouts: { ...inPostgres, variable: "DATABASE_URL" },
      },
    ],
    [
      "Redis over TLS, with prefix and schema",
      { ...both, STORE_URL: "rediss://db:6380/1", KEY_PREFIX: "pay:1", STORE_SCHEMA: "s" },
      { url: "rediss://db:6380/1", keyPrefix: "pay:1", payouts: { schema: "s" } },
    ],
    ["a foreign DATABASE_URL beside SQLite", { DATABASE_URL: "mysql://db" }, { kind: "sqlite" }],
  ])("takes %s", (_name, env, store) => {
    expect(readSettings({ ...good, ...env }).store).toMatchObject(store);
  });

  const payoutsIn = (url: string): Environment => ({ STORE_URL: redis, DATABASE_URL: url });
  const noPayouts = /a postgres:\/\/ URL/;
  test.each<[string, Environment, string, RegExp]>([
    ["Redis alone", { STORE_URL: redis }, "DATABASE_URL", /because Redis keeps only keys and nonces$/],
    ["an empty DATABASE_URL", payoutsIn(""), "DATABASE_URL", noPayouts],
    ["payouts in Redis", payoutsIn(redis), "DATABASE_URL", noPayouts],
    ["payouts in SQLite beside Redis", payoutsIn("sqlite:./x.db"), "DATABASE_URL", noPayouts],
    ["no scheme", { STORE_URL: "user:hunter2@db/platform" }, "STORE_URL", /sqlite:<path> or memory:/],
    ["MySQL", { STORE_URL: "mysql://user:hunter2@db" }, "STORE_URL", /sqlite:<path> or memory:/],
    [
      "a prefix of PostgreSQL",
      { STORE_URL: postgres, KEY_PREFIX: "x" },
      "KEY_PREFIX",
      /STORE_URL is no redis/,
    ],
    ["a quote", { STORE_URL: postgres, STORE_SCHEMA: 'a"b' }, "STORE_SCHEMA", /name of a schema/],
    ["the system's", { STORE_URL: postgres, STORE_SCHEMA: "pg_x" }, "STORE_SCHEMA", /begin with pg_/],
    ["an empty schema", { STORE_URL: postgres, STORE_SCHEMA: "" }, "STORE_SCHEMA", /name of a schema/],
    ["a prefix with a brace", { ...both, KEY_PREFIX: "{x}" }, "KEY_PREFIX", /letters, digits/],
  ])("refuses %s", (_name, env, variable, message) => {
    const error = errorOf(env);
    expect(error.variable).toBe(variable);
    expect(error.message).toMatch(message);
    expect(error.message).not.toMatch(/\n|hunter2/);
  });

  test("has one route under one path", () => {
    const webhook = {
      WEBHOOK_USERNAME: "u",
      WEBHOOK_PASSWORD: "test-password",
      WEBHOOK_SECRETS: "test-secret",
    };
    const onePath = { ...webhook, WEBHOOK_PATH: "/a", PAYOUT_PATH: "/a" };
    expect(errorOf(onePath).message).toBe("WEBHOOK_PATH: expected a path other than that of PAYOUT_PATH");
  });

  test.each([
    ["STORE_URL", "redis://user:hunter2@db"],
    ["CONFIRMATION_URL", "ftp://a.example/hunter2"],
  ])("shows no value of %s, which may hold a secret", (variable, value) => {
    expect(errorOf({ [variable]: value }).message).not.toContain("hunter2");
  });
});

test("refuses an inspector in production", () => {
  const error = errorOf({ INSPECTOR_PORT: "0", NODE_ENV: "production" });
  expect(error.message).toBe("INSPECTOR_PORT: expected no value, because NODE_ENV is production");
});

describe("BUSINESSES", () => {
  test("takes rows, with spaces in the IBAN", () => {
    const businesses = file("b.json", [
      { business_id: "b-1", iban: "DE89 3704 0044 0532 0130 00", name: "kept out" },
    ]);
    expect(readSettings({ ...good, BUSINESSES: businesses }).businesses).toEqual([
      { businessId: "b-1", iban: "DE89370400440532013000" },
    ]);
  });

  const row = { business_id: "b-1", iban: "DE89370400440532013000" };
  test.each<[string, unknown, RegExp]>([
    ["no JSON", "[", /is no JSON/],
    ["an object", row, /holds no list/],
    ["an empty list", [], /holds no list of at least one row/],
    ["a row without IBAN", [row, { business_id: "b-2" }], /row 2 of .* has no valid iban/],
    ["a row without business_id", [{ iban: row.iban }], /row 1 of .* has no valid business_id/],
    ["an empty business_id", [{ ...row, business_id: "" }], /row 1 of .* has no valid business_id/],
    ["a numeric business_id", [{ ...row, business_id: 7 }], /row 1 of .* has no valid business_id/],
    ["a word for an IBAN", [{ ...row, iban: "hello" }], /row 1 of .* has no valid iban/],
    ["a row that is no object", [row, "b-2"], /row 2 of .* is no object/],
  ])("refuses %s", (name, content, message) => {
    const error = errorOf({ BUSINESSES: file(`bad-b-${name}.json`, content) });
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^BUSINESSES: expected /);
  });
});
