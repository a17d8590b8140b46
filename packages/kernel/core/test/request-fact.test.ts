import { describe, expect, test } from "@jest/globals";
import { createRequestFact } from "@countersign/core";
import { shareFacts } from "@countersign/core/internal";

describe("createRequestFact", () => {
  test("tells what was set, last, and forgets what was deleted", () => {
    const fact = createRequestFact<string>();
    const request = {};
    expect(fact.get(request)).toBeUndefined();
    fact.set(request, "one");
    fact.set(request, "two");
    expect(fact.get(request)).toBe("two");
    fact.delete(request);
    expect(fact.get(request)).toBeUndefined();
    fact.set(request, "three");
    expect(fact.get(request)).toBe("three");
  });

  test("keeps facts and requests apart", () => {
    const [one, other] = [createRequestFact<number>(), createRequestFact<number>()];
    const request = {};
    one.set(request, 1);
    expect(other.get(request)).toBeUndefined();
    expect(one.get({})).toBeUndefined();
  });

  test("leaves nothing on the request that other code could see, copy or inherit", () => {
    const fact = createRequestFact<string>();
    const request = { method: "POST" };
    fact.set(request, "secret");
    expect(Reflect.ownKeys(request)).toEqual(["method"]);
    expect(fact.get({ ...request })).toBeUndefined();
    expect(fact.get(Object.create(request) as object)).toBeUndefined();
    expect(fact.get(new Proxy(request, {}))).toBeUndefined();
    expect(JSON.stringify(request)).not.toContain("secret");
  });

  test("deletes nothing where nothing was set", () => {
    const fact = createRequestFact<string>();
    const request = {};
    expect(() => fact.delete(request)).not.toThrow();
    expect(fact.get(request)).toBeUndefined();
  });

  test("keeps facts of a frozen request, and of one that was frozen behind its first", () => {
    const fact = createRequestFact<string>();
    const [frozen, late] = [Object.freeze({}), {}];
    fact.set(frozen, "one");
    fact.set(late, "two");
    Object.freeze(late);
    fact.set(late, "three");
    expect([fact.get(frozen), fact.get(late)]).toEqual(["one", "three"]);
  });

  test("has the facts of the native request for what was made of it, from either side", () => {
    const fact = createRequestFact<string>();
    const [native, made] = [{}, {}];
    fact.set(made, "forgotten");
    shareFacts(native, made);
    expect(fact.get(made)).toBeUndefined();
    fact.set(made, "one");
    expect(fact.get(native)).toBe("one");
    fact.set(native, "two");
    expect(fact.get(made)).toBe("two");
  });
});
