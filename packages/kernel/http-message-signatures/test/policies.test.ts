import { describe, expect, test } from "@jest/globals";
import {
  assertTimely,
  readSignature,
  verify,
  type SignatureProfile,
  type VerifyOptions,
} from "@countersign/http-message-signatures";
import { endOf } from "@countersign/http-message-signatures/door";
import {
  now,
  profile,
  sampleCovered,
  sampleHeaders,
  signedRequest,
  strict,
  verdictOf,
} from "./hand-signer.ts";

const without = { created: undefined, expires: undefined, alg: undefined, nonce: undefined };
const keyidAlone: Partial<VerifyOptions> = { requiredParameters: [] };
const verdict = (parameters: object, change: Partial<VerifyOptions>): string =>
  verdictOf(() =>
    verify(signedRequest({ parameters: { ...without, ...parameters } }), { ...strict, ...change }),
  );

describe("the parameters that a profile requires", () => {
  const all = { created: String(now), expires: String(now + 60), alg: '"ed25519"', nonce: '"n"' };

  test.each(["created", "expires", "alg", "nonce"] as const)("are by default all: %s", (name) => {
    expect(verdict({ ...all, [name]: undefined }, {})).toBe(`${name}-invalid`);
    expect(verdict(all, {})).toBe("accepted");
  });

  test.each(["created", "expires", "alg", "nonce"] as const)("may leave %s out, and nothing else", (name) => {
    const names = (["created", "expires", "keyid", "alg", "nonce"] as const).filter((one) => one !== name);
    expect(verdict({ ...all, [name]: undefined }, { requiredParameters: names })).toBe("accepted");
    for (const other of names.filter((one) => one !== "keyid")) {
      const lacking = { ...all, [name]: undefined, [other]: undefined };
      expect(verdict(lacking, { requiredParameters: names })).toBe(`${other}-invalid`);
    }
  });

  test.each<[string, object, string]>([
    ["no parameter but keyid", {}, "accepted"],
    ["no keyid", { keyid: undefined }, "keyid-invalid"],
    ["an empty keyid", { keyid: '""' }, "keyid-invalid"],
    ["a created that is text", { created: '"1"' }, "created-invalid"],
    ["an expires with a fraction", { expires: "1.0" }, "expires-invalid"],
    ["an expires before created", { created: "5", expires: "4" }, "expires-invalid"],
    ["an empty nonce", { nonce: '""' }, "nonce-invalid"],
    ["alg as a token", { alg: "ed25519" }, "alg-invalid"],
    ["an alg that is not taken", { alg: '"rsa-v1_5-sha256"' }, "alg-mismatch"],
    ["a tag that is bytes", { tag: ":AAAA:" }, "tag-invalid"],
  ])("where it requires none but keyid, are still checked: %s", (_title, parameters, code) => {
    expect(verdict(parameters, keyidAlone)).toBe(code);
  });

  test("may include tag", () => {
    const requiredParameters = ["keyid", "tag"] as const;
    expect(verdict({}, { requiredParameters })).toBe("tag-invalid");
    expect(verdict({ tag: '"t"' }, { requiredParameters })).toBe("accepted");
  });

  test("leave the algorithm to the key, which must still be one that is taken", () => {
    expect(verdict({}, { ...keyidAlone, algorithms: [] })).toBe("alg-mismatch");
  });
});

test.each([[["created", "nonse"]], ["nonce"], [[undefined]]])(
  "a required parameter that is none of RFC 9421 throws: %j",
  (requiredParameters) => {
    const misspelt = { ...profile, requiredParameters: requiredParameters as never };
    expect(() => readSignature(signedRequest(), misspelt)).toThrow(TypeError);
  },
);

describe("what a profile forbids", () => {
  const covering = (...covered: (readonly [string, string])[]): ReturnType<typeof signedRequest> =>
    signedRequest({ headers: [...sampleHeaders, "Date", "x"], covered: [...sampleCovered, ...covered] });
  const forbidding = (forbiddenComponents: readonly string[]): SignatureProfile => ({
    ...profile,
    forbiddenComponents,
  });

  test.each<[string, readonly string[], readonly [string, string], string]>([
    ["a full identifier", ['"date";bs'], ['"date";bs', ":eA==:"], "component-forbidden"],
    ["another name", ["x-date"], ['"date"', "x"], "accepted"],
  ])("is %s", (_title, forbidden, component, code) => {
    expect(verdictOf(() => readSignature(covering(component), forbidding(forbidden)))).toBe(code);
  });

  test.each([['"date'], ["date;bs"], ["da te"], [""]])("is no text that names no component: %j", (text) => {
    expect(() => readSignature(covering(), forbidding([text]))).toThrow(TypeError);
  });

  test("is a list, and no single name", () => {
    expect(() => readSignature(covering(), forbidding("date" as never))).toThrow(TypeError);
    const single = { ...profile, forbiddenParameters: "tag" as never };
    expect(() => readSignature(covering(), single)).toThrow(TypeError);
  });
});

test("required components are compared as full identifiers, whatever the order of parameters", () => {
  const fieldTypes = { "x-d": "dictionary" } as const;
  const message = signedRequest({
    headers: ["X-D", "a=1,b"],
    covered: [['"x-d";sf;key="a"', "1"]],
  });
  const code = (...requiredComponents: string[]): string =>
    verdictOf(() => verify(message, { ...strict, fieldTypes, requiredComponents }));
  expect(code('"x-d";key="a";sf')).toBe("accepted");
  expect(code('"x-d";sf;key="a"')).toBe("accepted");
  expect(code('"x-d";key="a"')).toBe("component-required");
  expect(code('"x-d";key="b";sf')).toBe("component-required");
  expect(code("x-d")).toBe("component-required");
});

describe("the time of a signature with fewer parameters", () => {
  const limits = { windowSeconds: 60, clockSkewSeconds: 30 };
  type Time = number | undefined;
  test.each<[string, Time, Time, number, string]>([
    ["created alone, after the window", now, undefined, now + 60.001, "signature-expired"],
    ["created alone, as far ahead as allowed", now + 30, undefined, now, "accepted"],
    ["created alone, further ahead", now + 30.001, undefined, now, "created-in-future"],
    ["expires alone, now", undefined, now, now, "accepted"],
    ["expires alone, gone", undefined, now, now + 0.001, "signature-expired"],
    ["expires alone, by a clock that gives NaN", undefined, now, Number.NaN, "window-too-long"],
    ["created alone, by a clock that gives NaN", now, undefined, Number.NaN, "created-in-future"],
  ])("%s", (_title, created, expires, clock, code) => {
    expect(verdictOf(() => assertTimely({ created, expires }, limits, clock))).toBe(code);
  });

  test("is refused where the window is no number", () => {
    const unset = { ...limits, windowSeconds: undefined as unknown as number };
    for (const times of [
      { created: now, expires: undefined },
      { created: undefined, expires: now },
    ]) {
      expect(verdictOf(() => assertTimely(times, unset, now))).toBe("window-too-long");
    }
  });

  test("has an end: expires, or created and the window", () => {
    expect(endOf({ created: now, expires: now + 5 }, 60)).toBe(now + 5);
    expect(endOf({ created: now, expires: undefined }, 60)).toBe(now + 60);
    expect(endOf({ created: undefined, expires: undefined }, 60)).toBeUndefined();
  });
});
