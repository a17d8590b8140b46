import { describe, expect, test } from "@jest/globals";
import {
  readSignature,
  verify,
  type SignatureProfile,
  type VerifyOptions,
} from "@countersign/http-message-signatures";
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

describe("the components that a profile requires", () => {
  const id = '"@query-param";name="id"';
  const target = "/pay?id=7&to=a%20b";
  const values: Readonly<Record<string, string>> = {
    "@method": "POST",
    "@path": "/pay",
    "@query": "?id=7&to=a%20b",
    "@request-target": target,
    "@target-uri": `https://pay.example${target}`,
    "@authority": "pay.example",
    "@scheme": "https",
    [id]: "7",
    '"@query-param";name="to"': "a%20b",
  };
  const code = (required: string, covered: readonly string[], of: string): string => {
    const list = ["@method", ...covered].map((name): [string, string] => [
      name.startsWith('"') ? name : `"${name}"`,
      values[name] ?? "",
    ]);
    const request = {
      ...signedRequest({ covered: list }),
      target: of,
      scheme: "https" as const,
      authority: "pay.example",
    };
    return verdictOf(() => readSignature(request, { ...profile, requiredComponents: [required] }));
  };

  test.each<[string, readonly string[]]>([
    ["@path", ["@path"]],
    ["@path", ["@request-target"]],
    ["@path", ["@target-uri"]],
    ["@query", ["@request-target"]],
    ["@query", ["@target-uri"]],
    ["@query", [id, '"@query-param";name="to"']],
    ["@authority", ["@target-uri"]],
    ["@scheme", ["@target-uri"]],
    [id, ["@query"]],
    [id, ["@request-target"]],
    [id, ["@target-uri"]],
  ])("are met: %s by %j", (required, covered) => {
    expect(code(required, covered, target)).toBe("accepted");
  });

  test.each<[string, readonly string[], string]>([
    ["@path", ["@query", "@authority"], target],
    ["@query", [id], target],
    ["@query", [id, '"@query-param";name="to"'], `${target}&more=1`],
    ["@query", [id, '"@query-param";name="to"'], `${target}&id=8`],
    ["@query", [id, '"@query-param";name="to"'], `${target}&`],
    ["@query", [id, '"@query-param";name="to"'], "/pay?&id=7&to=a%20b"],
    ["@query", [id], "/pay?"],
    ["@query", ["@path"], "/pay"],
    ["@authority", ["@request-target"], target],
    ["@scheme", ["@authority"], target],
    ["@request-target", ["@target-uri"], target],
    ["@target-uri", ["@request-target", "@authority", "@scheme"], target],
    [id, ["@query"], "/pay?to=1"],
    [id, ["@query"], "/pay?id=7&id=7"],
    [id, ['"@query-param";name="to"'], target],
    ["content-type", ["@target-uri"], target],
  ])("are not met: %s by %j of %s", (required, covered, of) => {
    expect(code(required, covered, of)).toBe("component-required");
  });
});
