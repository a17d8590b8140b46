import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { memoryNonceStore, type NonceStore } from "@countersign/http-signature-verify";

const claim = (store: NonceStore, nonce: string, token: string, retainMs = 1000): unknown =>
  store.claim({ scope: "k", nonce, token, retainMs });

describe("memoryNonceStore", () => {
  const environment = process.env["NODE_ENV"];
  afterEach(() => {
    process.env["NODE_ENV"] = environment;
  });

  test("gives a nonce to the first token and to that token again", () => {
    const store = memoryNonceStore();
    expect(claim(store, "n", "a")).toBe("fresh");
    expect(claim(store, "n", "a")).toBe("fresh");
    expect(claim(store, "n", "b")).toBe("seen");
  });

  test("keeps scopes apart also where their texts run together", () => {
    const store = memoryNonceStore();
    expect(store.claim({ scope: "a", nonce: "bc", token: "1", retainMs: 1000 })).toBe("fresh");
    expect(store.claim({ scope: "ab", nonce: "c", token: "2", retainMs: 1000 })).toBe("fresh");
    expect(store.claim({ scope: "1:a", nonce: "bc", token: "3", retainMs: 1000 })).toBe("fresh");
  });

  test("remembers until the retention has passed", () => {
    let time = 1;
    const store = memoryNonceStore({ now: () => time });
    claim(store, "n", "a", 1000);
    time = 1001;
    expect(claim(store, "n", "b", 1000)).toBe("seen");
    time = 1002;
    expect(claim(store, "n", "b", 1000)).toBe("fresh");
  });

  test("refuses when it is full, evicts nothing alive, and takes new ones when old ones have expired", () => {
    let time = 1;
    const store = memoryNonceStore({ max: 3, now: () => time });
    for (const nonce of ["1", "2", "3"]) claim(store, nonce, "a");
    expect(() => claim(store, "4", "a")).toThrow(/full with 3 live nonces/);
    for (const nonce of ["1", "2", "3"]) expect(claim(store, nonce, "b")).toBe("seen");
    time = 1500;
    expect(claim(store, "4", "a")).toBe("fresh");
  });

  test("sweeps at most once a second while it is full", () => {
    let time = 1;
    const store = memoryNonceStore({ max: 1, now: () => time });
    claim(store, "1", "a", 500);
    expect(() => claim(store, "2", "a")).toThrow(/full/);
    time = 900;
    expect(() => claim(store, "2", "a")).toThrow(/full/);
    time = 1001;
    expect(claim(store, "2", "a")).toBe("fresh");
  });

  test("refuses to run in production unless told", () => {
    process.env["NODE_ENV"] = "production";
    expect(() => memoryNonceStore()).toThrow(/memoryNonceStore: .*allowInProduction/);
    expect(() => memoryNonceStore({ allowInProduction: true })).not.toThrow();
  });

  test("warns of production by its first claim", () => {
    process.env["NODE_ENV"] = "production";
    const warn = jest.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const store = memoryNonceStore({ allowInProduction: true });
    for (const nonce of ["n", "m"]) expect(claim(store, nonce, "a")).toBe("fresh");
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^memoryNonceStore: /), { code: "memory-store" }],
    ]);
    warn.mockRestore();
  });

  test.each([
    ["max", { max: 0 }],
    ["max", { max: 1.5 }],
    ["allowInProduction", { allowInProduction: 1 }],
    ["unknown option maximum", { maximum: 1 }],
    ["now", { now: 1 }],
  ])("throws on a bad %s", (name, options) => {
    expect(() => memoryNonceStore(options as never)).toThrow(new RegExp(`^memoryNonceStore: .*${name}`));
  });
});
