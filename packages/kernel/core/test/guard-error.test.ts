import { GuardError, isGuardError } from "@countersign/core";
import type * as guardPackage from "@countersign/core";
import { describe, expect, test } from "@jest/globals";

const init = { status: 401, code: "signature-invalid", message: "the signature does not verify" };

test("GuardError has frames for what is the server's fault alone, and leaves the limit of others as it was", () => {
  const before = Error.stackTraceLimit;
  const stackOf = (status: number): string => new GuardError({ status, code: "c", message: "m" }).stack ?? "";
  expect(stackOf(401)).not.toMatch(/\n\s+at /);
  expect(stackOf(500)).toMatch(/\n\s+at /);
  expect(() => new GuardError({ status: 200, code: "c", message: "m" })).toThrow(TypeError);
  expect(Error.stackTraceLimit).toBe(before);
});

describe("GuardError", () => {
  test("carries what it is made of", () => {
    const cause = new Error("from the key store");
    const error = new GuardError({
      ...init,
      cause,
      headers: { "Retry-After": "5" },
      problem: { pointer: "/amount" },
    });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ ...init, name: "GuardError", statusCode: 401, expose: false });
    expect(error.cause).toBe(cause);
    expect(error.headers).toEqual({ "Retry-After": "5" });
    expect(error.problem).toEqual({ pointer: "/amount" });
  });

  test("keeps its headers when the given object is changed afterwards", () => {
    const headers = { "Retry-After": "5" };
    const problem = { pointer: "/a" };
    const error = new GuardError({ ...init, headers, problem });
    headers["Retry-After"] = "6";
    problem.pointer = "/b";
    expect([error.headers, error.problem]).toEqual([{ "Retry-After": "5" }, { pointer: "/a" }]);
  });

  test.each([
    ["success", 200],
    ["a redirect", 302],
    ["one below", 399],
    ["one above", 600],
    ["a fraction", 400.5],
    ["not a number", Number.NaN],
    ["text", "401"],
    ["undefined", undefined],
  ])("throws on a status that is %s", (_name, status) => {
    expect(() => new GuardError({ ...init, status: status as number })).toThrow(TypeError);
  });

  test.each([400, 599])("accepts the status %i", (status) => {
    expect(new GuardError({ ...init, status }).status).toBe(status);
  });
});

test("takes no code outside of a union that is given", () => {
  type TenantCode = "tenant-unknown" | "tenant-closed";
  const refusal: GuardError<TenantCode> = new GuardError<TenantCode>({ ...init, code: "tenant-unknown" });
  const anyRefusal: GuardError = refusal;
  expect(anyRefusal.code).toBe("tenant-unknown");

  // @ts-expect-error -- a typo
  const typo = new GuardError<TenantCode>({ ...init, code: "tenant-unknwon" });
  // @ts-expect-error -- any string
  const anyString = new GuardError<TenantCode>(init);
  // @ts-expect-error -- the type of another error
  const other: GuardError<TenantCode> = new GuardError({ ...init, code: "elsewhere" });
  expect([typo.code, anyString.code, other.code]).toEqual(["tenant-unknwon", init.code, "elsewhere"]);
  // @ts-expect-error -- it never has this one
  expect(refusal.code === "elsewhere").toBe(false);
});

describe("isGuardError", () => {
  test("recognises an error of this copy of the package and of another one", async () => {
    const otherCopy = "../dist/guard-error.js?copy";
    const other = (await import(otherCopy)) as Pick<typeof guardPackage, "GuardError">;
    const error = new other.GuardError(init);
    expect(other.GuardError).not.toBe(GuardError);
    expect(error).not.toBeInstanceOf(GuardError);
    expect([isGuardError(error), isGuardError(new GuardError(init))]).toEqual([true, true]);
  });

  test.each([
    ["another Error", new Error("no")],
    ["an Error with the same members", Object.assign(new Error("no"), { ...init, name: "GuardError" })],
    [
      "an Error with a false mark",
      Object.assign(new Error("no"), { [Symbol.for("countersign.GuardError")]: 1 }),
    ],
    ["a marked object", { [Symbol.for("countersign.GuardError")]: true }],
    ["a string", "GuardError"],
    ["null", null],
    ["undefined", undefined],
  ])("does not recognise %s", (_name, value) => {
    expect(isGuardError(value)).toBe(false);
  });
});
