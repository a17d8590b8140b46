import { resolve } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { Command } from "commander";
import * as fc from "fast-check";
import { codePoint } from "@countersign/test-support/runs/code-point.ts";
import { messageOf, UsageError } from "../src/command-io.ts";
import { loadDriver } from "../src/load-package.ts";
import { failingInOneLine } from "../src/operator/operator-store.ts";
import { storeFailure } from "../src/operator/store-failure.ts";
import { addStoreOptions, givenStoreFlags, parseStoreUrl, readTarget } from "../src/operator/store-target.ts";

const location = parseStoreUrl("postgres://user:s3cret@host/db");

function coded(message: string, code: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

/** As the driver of MariaDB throws what the server answers. */
function stated(message: string, sqlState: string): Error {
  return Object.assign(new Error(message), { code: "ER_TEST", errno: 1, sqlState });
}

describe("storeFailure", () => {
  const refused = "the connection was refused (ECONNREFUSED)";
  const lost = "Connection terminated unexpectedly";
  const denied = 'password authentication failed for user "user"';
  const several = Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" });
  const wrapped = new Error("failed", { cause: coded("", "ENOTFOUND") });

  test.each<[string, unknown, string]>([
    ["a refused connection", coded("", "ECONNREFUSED"), refused],
    ["several refused connections", several, refused],
    ["a wrapped one", wrapped, "the host name is unknown (ENOTFOUND)"],
    [
      "a line that MariaDB closed",
      coded("Connection lost", "PROTOCOL_CONNECTION_LOST"),
      "the connection was lost (PROTOCOL_CONNECTION_LOST)",
    ],
    ["a MariaDB without room", stated("Too many connections", "08004"), "Too many connections"],
    ["a time-out of the driver", new Error("timeout expired"), "timeout expired"],
    ["a lost connection", new Error(lost), lost],
    ["a server that stops", coded("terminating connection", "57P01"), "terminating connection"],
  ])("says of %s that the store cannot be reached", (_name, error, why) => {
    expect(storeFailure(location, error)).toMatchObject({
      exitCode: 3,
      message: `postgres://user@host/db cannot be reached: ${why}`,
      cause: error,
    });
  });

  test.each<[string, unknown, string]>([
    ["a lock that timed out", coded("due to lock timeout", "55P03"), "due to lock timeout"],
    [
      "a lock of MariaDB that timed out",
      stated("Lock wait timeout exceeded", "HY000"),
      "Lock wait timeout exceeded",
    ],
    ["a wrong password", coded(denied, "28P01"), denied],
    ["a message with the password", new Error("cannot use s3cret"), "cannot use …"],
    ["a message on lines", new Error("one\n  two\u001B[2J"), "one two\\u{1b}[2J"],
    ["a message of our stores", new Error("createStores: no tables"), "no tables"],
    ["a message of a store's step", new Error("postgres idempotency store: is full"), "is full"],
    ["no message", new Error(), "failed without a message"],
    ["a string", "broken", "broken"],
  ])("says of %s what it is", (_name, error, why) => {
    const failure = storeFailure(location, error);
    expect(failure).toMatchObject({ exitCode: 1, message: `postgres://user@host/db: ${why}` });
    expect(failure.cause).toBe(error);
  });

  test("ends with a chain of causes that ends in itself", () => {
    const error = new Error("loop");
    error.cause = error;
    expect(storeFailure(location, error).message).toContain("loop");
  });
});

describe("failingInOneLine", () => {
  const target = { location, schema: undefined, table: undefined, prefix: undefined, shown: location.shown };

  test("makes a failure of what the engine throws, also synchronously", async () => {
    const failing = failingInOneLine(target, () => {
      throw new Error("broken");
    });
    await expect(failing).rejects.toMatchObject({
      name: "CommandError",
      message: "postgres://user@host/db: broken",
    });
  });

  test.each([
    ["a wrong command line", new UsageError("--schema: no")],
    ["a fault of the command", new TypeError("x is not a function")],
    ["a failure", storeFailure(location, new Error("broken"))],
  ])("passes on %s as it is", async (_name, error) => {
    await expect(failingInOneLine(target, () => Promise.reject(error))).rejects.toBe(error);
  });
});

test("a package that a driver lacks is no driver that is missing", async () => {
  const error = coded("Cannot find package 'pg-types' imported from here", "ERR_MODULE_NOT_FOUND");
  await expect(loadDriver(["pg"], () => Promise.reject(error))).rejects.toBe(error);
});

describe("parseStoreUrl", () => {
  test.each([
    ["sqlite:/var/lib/p.db", "sqlite", "sqlite:/var/lib/p.db"],
    ["sqlite:p.db", "sqlite", `sqlite:${resolve("p.db")}`],
    ["sqlite:http://host/p.db", "sqlite", `sqlite:${resolve("http://host/p.db")}`],
    ["postgres://h/d", "postgres", "postgres://h/d"],
    ["postgresql://u@h:5433/d?sslmode=require", "postgres", "postgresql://u@h:5433/d"],
    ["postgres://u@%2Frun%2Fpostgresql/d", "postgres", "postgres://u@%2Frun%2Fpostgresql/d"],
    ["mysql://u@h/d?ssl=%7B%7D", "mysql", "mysql://u@h/d"],
    ["mariadb://u@h:3307/d", "mysql", "mariadb://u@h:3307/d"],
    ["redis://h", "redis", "redis://h"],
    ["rediss://h:6380/2", "redis", "rediss://h:6380/2"],
  ])("reads %s", (text, engine, shown) => {
    expect(parseStoreUrl(text)).toMatchObject({ engine, shown });
  });

  test.each([
    ["postgres://user:s3cret@h/d", "postgres://user@h/d"],
    ["postgres://user:s3cret@h/d?password=s3cret&sslpassword=s3cret", "postgres://user@h/d"],
    ["postgres://user:pa%73s3cret%40@h/d", "postgres://user@h/d"],
    ["mysql://user:s3cret@h/d", "mysql://user@h/d"],
    ["mariadb://user:pa%73s3cret%40@h/d", "mariadb://user@h/d"],
    ["redis://:s3cret@h:6379/1", "redis://h:6379/1"],
    ["redis://default:s3cret@h", "redis://h"],
    ["rediss://s3cret@h", "rediss://h"],
  ])("shows %s without its credentials, and hides them in messages", (text, shown) => {
    const parsed = parseStoreUrl(text);
    expect(parsed).toMatchObject({ shown, address: text });
    const { password, username } = new URL(text);
    for (const secret of [password || username, decodeURIComponent(password || username)]) {
      expect(parsed.hide(`refused ${secret}; ${secret}`)).toBe("refused …; …");
    }
  });

  test.each([
    ["nothing", ""],
    ["a path", "/var/lib/p.db"],
    ["another scheme", "mssql://user:s3cret@h/d"],
    ["memory", "memory:"],
    ["SQLite without a path", "sqlite:"],
    ["SQLite with a blank path", "sqlite: "],
    ["SQLite in memory", "sqlite::memory:"],
    ["Redis without a host", "redis://"],
    ["Redis without a host, with a database", "redis:///1"],
    ["MariaDB without a host", "mysql:///d"],
    ["MariaDB without a database", "mysql://user:s3cret@h"],
    ["MariaDB without a database, with a slash", "mariadb://user:s3cret@h/"],
    ["MariaDB with two databases", "mysql://user:s3cret@h/d/s3cret"],
    ["a second password of MariaDB", "mysql://user@h/d?password2=s3cret"],
    ["another socket of MariaDB", "mysql://h/d?socketPath=/run/s3cret"],
    ["a key in the parameters of MariaDB", "mysql://h/d?ssl=%7B%22passphrase%22:%22s3cret%22%7D"],
    ["a slash in the password", "postgres://user:s3cret/s3cret@h/d"],
    ["a slash behind a digit of the password", "postgres://user:1/s3cret@h/d"],
    ["a question mark in the password", "postgres://user:1?s3cret@h/d"],
    ["a number sign in the password", "postgres://user:1#s3cret@h/d"],
    ["a number sign in the password of Redis", "redis://:s3cret#@h"],
    ["an escape that is none", "postgres://user:s3cret%zz@h/d"],
    ["a line end in the port", "postgres://user:s3cret@h:a\nb/d"],
  ])("refuses %s, and shows nothing of it", (_name, text) => {
    expect(() => parseStoreUrl(text)).toThrow(UsageError);
    expect(() => parseStoreUrl(text)).toThrow(/^--store-url: [^\n]*$/);
    expect(() => parseStoreUrl(text)).not.toThrow(/s3cret/);
  });

  test("shows no password, whatever it is", () => {
    const password = fc
      .string({ unit: codePoint, minLength: 8 })
      .filter((text) => !"postgres://user@host".includes(text));
    const form = fc.constantFrom<(text: string) => string>(
      (text) => `postgres://user:${text}@host/db`,
      (text) => `mysql://user:${text}@host/db`,
      (text) => `redis://:${text}@host`,
      (text) => `redis://${text}@host`,
      (text) => `postgres://host/db?password=${text}`,
    );
    fc.assert(
      fc.property(password, form, (text, urlOf) => {
        for (const written of [text, encodedUri(text)]) {
          let said: string;
          try {
            said = parseStoreUrl(urlOf(written)).shown;
          } catch (error) {
            expect(error).toBeInstanceOf(UsageError);
            said = messageOf(error);
          }
          expect(said).not.toContain(written);
        }
      }),
    );
  });
});

describe("givenStoreFlags", () => {
  test.each<[args: string[], env: string | undefined, words: string]>([
    [["--store-url", "sqlite:p.db"], undefined, "--store-url sqlite:p.db"],
    [
      ["--store-url", "sqlite:it's p.db", "--table", "t"],
      "redis://h",
      String.raw`--store-url 'sqlite:it'\''s p.db' --table t`,
    ],
    [["--schema", "s", "--table", "a b"], "postgres://user:s3cret@h/d", "--schema s --table 'a b'"],
    [["--store-url", "postgres://user:s3cret@h/d?x=1"], undefined, "--store-url 'postgres://user:…@h/d?x=1'"],
    [
      ["--store-url", "postgres://h/d?password=a%26b+c"],
      undefined,
      "--store-url 'postgres://h/d?password=…'",
    ],
    [
      ["--store-url", "mysql://u:s3cret@h/d", "--table", "t"],
      undefined,
      "--store-url 'mysql://u:…@h/d' --table t",
    ],
    [["--store-url", "redis://s3cret@h", "--prefix", "p"], undefined, "--store-url 'redis://…@h' --prefix p"],
    [["--store-module", "./\u001B.js"], undefined, String.raw`--store-module './\u{1b}.js'`],
    [[], "redis://:s3cret@h", ""],
  ])("of %j, with %p in the environment", (args, env, words) => {
    const command = addStoreOptions(new Command());
    if (env !== undefined) command.setOptionValueWithSource("storeUrl", env, "env");
    command.parse(args, { from: "user" });
    expect(givenStoreFlags(command, readTarget(command.opts())).join(" ")).toBe(words);
  });
});

function encodedUri(text: string): string {
  return encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, "?"));
}
