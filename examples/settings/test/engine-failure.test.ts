import { describe, expect, test } from "@jest/globals";
import { failureOf } from "../src/engine-failure.ts";

describe("failureOf", () => {
  const coded = (code: string, message = "x"): Error => Object.assign(new Error(message), { code });
  const ended = "it ended the connection: something else listens there";

  test.each<[string, unknown, string]>([
    ["a code of Node", coded("ECONNREFUSED"), "nobody listens there"],
    ["a code of PostgreSQL", coded("3D000"), "there is no such database"],
    ["the first word of Redis", new Error("WRONGPASS invalid"), "user name or password are wrong"],
    ["a time-out without a code", new Error("timeout exceeded when trying to connect"), "no answer"],
    ["a certificate", coded("X", "self-signed certificate"), "TLS fails: X"],
    ["a missing number", new Error("ERR DB index is out of range"), "it has no database of this number"],
    ["a server of another kind", new Error("Socket closed unexpectedly"), ended],
    ["a port that fetch refuses", new Error("bad port"), "fetch refuses its port"],
    ["a socket that is not there", coded("ENOENT"), "its socket is not there"],
    ["a code that nobody knows", coded("EODD", "at hunter2"), "EODD"],
    ["no code at all", new RangeError("at hunter2"), "RangeError"],
    ["no error at all", "hunter2", "unknown error"],
    ["nothing", undefined, "unknown error"],
  ])("tells %s without the driver's own words", (_name, error, expected) => {
    expect(failureOf(error)).toBe(expected);
  });
});
