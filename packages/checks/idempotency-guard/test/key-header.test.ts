import { type GuardError } from "@countersign/core";
import { recordRawBody } from "@countersign/core/internal";
import { idempotencyKeyHeader } from "@countersign/idempotency-guard";
import { describe, expect, test } from "@jest/globals";
import { bodyFingerprint } from "../src/request-key.ts";

interface Lines {
  readonly lines?: readonly string[];
  readonly method?: string;
  readonly url?: string;
  readonly body?: string;
  readonly name?: string;
  readonly rawHeaders?: readonly string[];
}

function requestOf({
  lines = [],
  method = "POST",
  url = "/refunds",
  body,
  name = "Idempotency-Key",
  rawHeaders = [],
}: Lines): object {
  const request = {
    method,
    url,
    httpVersionMajor: 1,
    rawHeaders: [...lines.flatMap((line) => [name, line]), ...rawHeaders],
  };
  if (body !== undefined) recordRawBody(request, Buffer.from(body));
  return request;
}

const keyOf = (lines: readonly string[], options = {}): unknown => {
  try {
    return idempotencyKeyHeader(options).key(requestOf({ lines }));
  } catch (error) {
    const { status, code } = error as GuardError;
    return `${status} ${code}`;
  }
};
const invalid = "400 idempotency-key-invalid";

describe("the field Idempotency-Key", () => {
  test.each<[string, readonly string[], strict: unknown, bare: unknown]>([
    ["none", [], undefined, undefined],
    [
      "the example of the draft",
      ['"8e03978e-40d5-43dd-bc93-6894a57f9324"'],
      "8e03978e-40d5-43dd-bc93-6894a57f9324",
      "8e03978e-40d5-43dd-bc93-6894a57f9324",
    ],
    ["white space around it", [' \t"a" '], "a", "a"],
    ["a space in it", ['"a b"'], "a b", "a b"],
    ["escapes", [String.raw`"a\"b\\c"`], String.raw`a"b\c`, String.raw`a"b\c`],
    ["without quotation marks", ["8e03978e-40d5"], invalid, "8e03978e-40d5"],
    ["white space around a bare one", [" KG5LxwFBepaKHyUD "], invalid, "KG5LxwFBepaKHyUD"],
    ["a colon in a bare one", ["a:b/c"], invalid, "a:b/c"],
    ["a comma in a bare one", ["a,b"], invalid, invalid],
    ["a semicolon in a bare one", ["a;b"], invalid, invalid],
    ["a space in a bare one", ["a b"], invalid, invalid],
    ["one quotation mark", ['"a'], invalid, invalid],
    ["one at the end", ['a"'], invalid, invalid],
    ["two strings", ['"a", "b"'], invalid, invalid],
    ["parameters", ['"a";b=1'], invalid, invalid],
    ["two lines", ['"a"', '"a"'], invalid, invalid],
    ["two bare lines", ["a", "a"], invalid, invalid],
    ["an empty line", [""], invalid, invalid],
    ["an empty string", ['""'], invalid, invalid],
    ["a byte sequence", [":YQ==:"], invalid, ":YQ==:"],
    ["an unknown escape", [String.raw`"a\n"`], invalid, invalid],
    ["an escape at the end", [String.raw`"a\"`], invalid, invalid],
    ["a character beyond ASCII", ['"é"'], invalid, invalid],
    ["a bare one beyond ASCII", ["é"], invalid, invalid],
    ["a tab in it", ['"a\tb"'], invalid, invalid],
    ["a very long bare one", ["a".repeat(256)], invalid, invalid],
    ["the longest bare one", ["a".repeat(255)], invalid, "a".repeat(255)],
  ])("%s", (_name, lines, strict, bare) => {
    expect(keyOf(lines)).toBe(strict);
    expect(keyOf(lines, { bareKeys: true })).toBe(bare);
  });

  test("is found in requests of Node, Fastify and fetch, by any case of its name", () => {
    const { key } = idempotencyKeyHeader();
    const node = requestOf({ lines: ['"a"'], name: "idempotency-KEY" });
    expect(key(node)).toBe("a");
    expect(key({ raw: node })).toBe("a");
    expect(key(new Request("http://a.example/", { headers: { "Idempotency-Key": '"a"' } }))).toBe("a");
    const twice = new Headers([
      ["Idempotency-Key", '"a"'],
      ["Idempotency-Key", '"a"'],
    ]);
    expect(() => key(new Request("http://a.example/", { headers: twice }))).toThrow(/exactly one string/);
    expect(() => key({})).toThrow(TypeError);
  });

  test("may have another name", () => {
    const { key } = idempotencyKeyHeader({ header: "X-Request-Id" });
    expect(key(requestOf({ lines: ['"a"'], name: "x-request-id" }))).toBe("a");
    expect(key(requestOf({ lines: ['"a"'] }))).toBeUndefined();
  });

  test("is of one caller", () => {
    const preset = (who: string) => idempotencyKeyHeader<object>({ caller: () => who, bareKeys: true });
    const request = requestOf({ lines: ["b:c"] });
    expect(preset("acme").key(request)).toBe("acme:b:c");
    // No two callers have a key in common, whatever they are called.
    expect(preset("a:b").key(requestOf({ lines: ["c"] }))).not.toBe(preset("a").key(request));
    expect(preset("acme").key(requestOf({}))).toBeUndefined();
    expect(() => preset("").key(request)).toThrow(TypeError);
    expect(() =>
      idempotencyKeyHeader<object>({ caller: () => undefined }).key(requestOf({ lines: ['"a"'] })),
    ).toThrow(TypeError);
  });
});

describe("the fingerprint", () => {
  const { fingerprint } = idempotencyKeyHeader();
  const base: Lines = { body: '{"amount":1}' };

  test("is that of method, target and body", () => {
    const first = fingerprint(requestOf(base));
    expect(first).toMatch(/^[\w-]{43}$/);
    expect(fingerprint(requestOf(base))).toBe(first);
    const others: Lines[] = [
      { ...base, body: '{"amount": 1}' },
      { ...base, method: "PATCH" },
      { ...base, url: "/refunds?dry=1" },
      { ...base, url: "/payments" },
      { ...base, body: "" },
      // What stands in one must not stand in the other.
      { ...base, url: '/refunds"]{"amount":1}', body: "" },
    ];
    const all = others.map((other) => fingerprint(requestOf(other)));
    expect(new Set([first, ...all]).size).toBe(others.length + 1);
  });

  test("goes by the target before a router has changed it", () => {
    const mounted = { ...requestOf({ ...base, url: "/" }), originalUrl: "/refunds" };
    recordRawBody(mounted, Buffer.from(base.body ?? ""));
    expect(fingerprint(mounted)).toBe(fingerprint(requestOf(base)));
  });

  test("is there for a request without a body that nobody has captured", () => {
    const none = fingerprint(requestOf({}));
    expect(fingerprint(requestOf({ rawHeaders: ["Content-Length", "0"] }))).toBe(none);
    expect(fingerprint(requestOf({ body: "" }))).toBe(none);
  });

  test.each([
    ["with a length", ["Content-Length", "5"]],
    ["in chunks", ["Transfer-Encoding", "chunked"]],
    ["of two lengths", ["Content-Length", "0", "Content-Length", "5"]],
  ])("refuses a body %s that nobody has captured", (_name, rawHeaders) => {
    expect(() => fingerprint(requestOf({ rawHeaders }))).toThrow(
      expect.objectContaining({ status: 500, code: "fingerprint-missing" }),
    );
  });

  test("refuses a coded body, of which parsers hand over other bytes, as the other checks do", () => {
    const rawHeaders = ["Content-Length", "5", "Content-Encoding", "gzip"];
    const refused = expect.objectContaining({
      status: 415,
      code: "content-encoding-unsupported",
      headers: { "Accept-Encoding": "identity" },
    });
    expect(() => fingerprint(requestOf({ rawHeaders }))).toThrow(refused);
    expect(() => bodyFingerprint(requestOf({ rawHeaders }))).toThrow(refused);
  });

  test("refuses over HTTP/2, where no length means nothing, and for an unread Request", () => {
    const code = expect.objectContaining({ status: 500, code: "fingerprint-missing" });
    expect(() => fingerprint({ ...requestOf({}), httpVersionMajor: 2 })).toThrow(code);
    expect(() => fingerprint(new Request("http://a.example/"))).toThrow(code);
  });
});

test.each<[string, unknown, RegExp]>([
  ["a name that is none", { header: "a b" }, /option header must be/],
  ["a text for bareKeys", { bareKeys: "yes" }, /option bareKeys must be/],
  ["a text for caller", { caller: "acme" }, /option caller must be/],
  ["an unknown option", { bare: true }, /unknown option bare/],
])("throws on %s", (_name, options, message) => {
  expect(() => idempotencyKeyHeader(options as never)).toThrow(message);
  expect(() => idempotencyKeyHeader(options as never)).toThrow(TypeError);
});
