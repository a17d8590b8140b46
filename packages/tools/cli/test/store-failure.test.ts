import { describe, expect, test } from "@jest/globals";
import { UsageError } from "../src/command-io.ts";
import { loadDriver } from "../src/load-package.ts";
import { failingInOneLine } from "../src/operator/operator-store.ts";
import { storeFailure } from "../src/operator/store-failure.ts";
import { parseStoreUrl } from "../src/operator/store-target.ts";

const location = parseStoreUrl("postgres://user:s3cret@host/db");

function coded(message: string, code: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

describe("storeFailure", () => {
  test.each<[string, unknown, number, string]>([
    [
      "a refused connection",
      coded("", "ECONNREFUSED"),
      3,
      "cannot be reached: the connection was refused (ECONNREFUSED)",
    ],
    [
      "several refused connections",
      Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" }),
      3,
      "cannot be reached: the connection was refused (ECONNREFUSED)",
    ],
    [
      "a wrapped one",
      new Error("failed", { cause: coded("", "ENOTFOUND") }),
      3,
      "cannot be reached: the host name is unknown (ENOTFOUND)",
    ],
    ["a time-out of the driver", new Error("timeout expired"), 3, "cannot be reached: timeout expired"],
    [
      "a lost connection",
      new Error("Connection terminated unexpectedly"),
      3,
      "cannot be reached: Connection terminated unexpectedly",
    ],
    [
      "a server that stops",
      coded("terminating connection", "57P01"),
      3,
      "cannot be reached: terminating connection",
    ],
    [
      "a lock that timed out",
      coded("canceling statement due to lock timeout", "55P03"),
      1,
      ": canceling statement due to lock timeout",
    ],
    [
      "a wrong password",
      coded('password authentication failed for user "user"', "28P01"),
      1,
      ': password authentication failed for user "user"',
    ],
    ["a message with the password", new Error("cannot use s3cret"), 1, ": cannot use …"],
    ["a message on lines", new Error("one\n  two\u001B[2J"), 1, ": one two\\u{1b}[2J"],
    [
      "a message of our stores",
      new Error("createPostgresStores: the tables are missing"),
      1,
      ": the tables are missing",
    ],
    ["a message of a store's step", new Error("postgres idempotency store: is full"), 1, ": is full"],
    ["no message", new Error(), 1, ": failed without a message"],
    ["a string", "broken", 1, ": broken"],
  ])("says of %s what it is", (_name, error, exitCode, message) => {
    const failure = storeFailure(location, error);
    expect({ exitCode: failure.exitCode, message: failure.message }).toEqual({
      exitCode,
      message: message.startsWith(":")
        ? `postgres://user@host/db${message}`
        : `postgres://user@host/db ${message}`,
    });
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
  await expect(loadDriver("pg", () => Promise.reject(error))).rejects.toBe(error);
});
