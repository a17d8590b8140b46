import { describe, expect, test } from "@jest/globals";
import { failureOf } from "../src/engine-failure.ts";

describe("failureOf", () => {
  test.each<[string, unknown, string]>([
    ["a code of Node", Object.assign(new Error("x"), { code: "ECONNREFUSED" }), "nobody listens there"],
    ["a code of PostgreSQL", Object.assign(new Error("x"), { code: "3D000" }), "there is no such database"],
    ["the first word of Redis", new Error("WRONGPASS invalid"), "user name or password are wrong"],
    ["a time-out without a code", new Error("timeout exceeded when trying to connect"), "no answer"],
    ["a certificate", Object.assign(new Error("self-signed certificate"), { code: "X" }), "TLS fails: X"],
    ["a code that nobody knows", Object.assign(new Error("at hunter2"), { code: "EODD" }), "EODD"],
    ["no code at all", new RangeError("at hunter2"), "RangeError"],
    ["no error at all", "hunter2", "unknown error"],
    ["nothing", undefined, "unknown error"],
  ])("tells %s without the driver's own words", (_name, error, expected) => {
    expect(failureOf(error)).toBe(expected);
  });
});
