import { sign } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { verify, type RequestMessage } from "@countersign/http-message-signatures";
import { privateKey, sampleCovered, sampleHeaders, signedRequest, strict, verdictOf } from "./hand-signer.ts";
import {
  accepts,
  good,
  refuses,
  signedWithQuery,
  withCovered,
  withFields,
  withNote,
  type Make,
} from "./hostile-rows.ts";

describe("coverage and base", () => {
  accepts([
    [
      "components in another order",
      () => signedRequest({ covered: [...sampleCovered.slice(2), ...sampleCovered.slice(0, 2)] }),
    ],
    [
      "further computable components",
      () => withCovered(['"host"', "example.com"], ['"@query"', "?"], ['"@authority"', "example.com"]),
    ],
    ["a query that is covered", () => signedWithQuery()],
    ["the pseudo-header lines of HTTP/2", () => withPseudo()],
    ["@authority by :authority", () => withPseudo(['"@authority"', "example.com"])],
    ["two lines of a list field", () => withNote("a, b", " a ", "\tb")],
    ["an empty covered field", () => withNote("", "")],
  ]);

  refuses([
    ...sampleCovered.map(([missing]): readonly [string, string, Make] => [
      `a signature without ${missing}`,
      "component-required",
      () => signedRequest({ covered: sampleCovered.filter(([identifier]) => identifier !== missing) }),
    ]),
    ["no component at all", "components-empty", () => signedRequest({ covered: [] })],
    [
      "a required component with a parameter",
      "component-parameter-unsupported",
      () =>
        signedRequest({
          covered: sampleCovered.map(([identifier, value]) =>
            identifier === '"content-digest"' ? [`${identifier};req`, value] : [identifier, value],
          ),
        }),
    ],
    ["a component twice", "component-duplicate", () => withCovered(['"@method"', "POST"])],
    ["a field twice", "component-duplicate", () => withCovered(['"content-type"', "application/json"])],
    [
      "a component twice with reordered parameters",
      "component-parameter-unsupported",
      () => withCovered(['"x";sf;key="a"', ""], ['"x";key="a";sf', ""]),
    ],
    [
      "an unknown component parameter",
      "component-parameter-unsupported",
      () => withCovered(['"host";x', "example.com"]),
    ],
    ["a component parameter twice", "field-invalid", () => withCovered(['"host";sf;sf', "example.com"])],
    ["req", "component-parameter-unsupported", () => withCovered(['"@query";req', "?"])],
    ["bs with sf", "component-parameter-unsupported", () => withCovered(['"host";bs;sf', "example.com"])],
    ["tr", "component-parameter-unsupported", () => withCovered(['"host";tr', "example.com"])],
    ["@query-param", "component-unsupported", () => withCovered(['"@query-param"', ""])],
    ["@status", "component-unsupported", () => withCovered(['"@status"', "200"])],
    [
      "@signature-params as a component",
      "component-unsupported",
      () => withCovered(['"@signature-params"', ""]),
    ],
    ["an unknown derived component", "component-unsupported", () => withCovered(['"@x"', ""])],
    ["@ alone", "component-unsupported", () => withCovered(['"@"', ""])],
    ["a derived component in upper case", "component-unsupported", () => withCovered(['"@Query"', "?"])],
    ["a field name in upper case", "component-name-invalid", () => withCovered(['"Host"', "example.com"])],
    ["an empty field name", "component-name-invalid", () => withCovered(['""', ""])],
    ["a space in a field name", "component-name-invalid", () => withCovered(['"host "', "example.com"])],
    [
      "a pseudo-header line of HTTP/2",
      "component-name-invalid",
      () => withPseudo(['":path"', "/api/v1/transaction"]),
    ],
    ["the :authority of HTTP/2", "component-name-invalid", () => withPseudo(['":authority"', "example.com"])],
    [
      "Host and :authority of two servers",
      "authority-conflict",
      () => ({ ...signedRequest(), rawHeaders: [":authority", "b.example", ...signedRequest().rawHeaders] }),
    ],
    ["a colon in a field name", "component-name-invalid", () => withCovered([`"x: 1\\""`, ""])],
    ["a covered field that is absent", "covered-field-missing", () => withCovered(['"x-absent"', ""])],
    [
      "an absent field signed as undefined",
      "covered-field-missing",
      () => withCovered(['"x-absent"', "undefined"]),
    ],
    ["an inherited name as field", "covered-field-missing", () => withCovered(['"constructor"', ""])],
    ["__proto__ as field", "covered-field-missing", () => withCovered(['"__proto__"', ""])],
    [
      "Content-Type twice",
      "covered-field-repeated",
      () =>
        signedRequest({
          headers: [...sampleHeaders, "content-type", "text/plain"],
          covered: sampleCovered.map(([identifier, value]) =>
            identifier === '"content-type"' ? [identifier, `${value}, text/plain`] : [identifier, value],
          ),
        }),
    ],
    [
      "Idempotency-Key twice",
      "covered-field-repeated",
      () =>
        signedRequest({
          headers: [...sampleHeaders, "Idempotency-Key", "a", "Idempotency-Key", "b"],
          covered: [...sampleCovered, ['"idempotency-key"', "a, b"]],
        }),
    ],
    ["@scheme where it is not known", "covered-field-missing", () => withCovered(['"@scheme"', "https"])],
  ]);

  test("accepts any order of the parameters", () => {
    const { created, expires, keyid, alg, nonce } = good.draft.parameters;
    const orders = [
      { nonce, alg, keyid, expires, created },
      { alg, created, nonce, expires, keyid },
      { keyid, tag: '"payout"', created, alg, nonce, expires },
    ];
    for (const parameters of orders) {
      const names = Object.entries(parameters);
      const list = names.map(([name, value]) => `;${name}=${value ?? ""}`).join("");
      const input = good.input.replace(/;.*/, list);
      const base = good.base.replace(/\);created.*/, `)${list}`);
      const bytes = sign(null, Buffer.from(base), privateKey).toString("base64");
      expect(verdictOf(() => verify(withFields(input, `sig1=:${bytes}:`), strict))).toBe("accepted");
    }
  });
});

/** As HTTP/2 brings it: pseudo-header lines first, and no Host. */
function withPseudo(...covered: (readonly [string, string])[]): RequestMessage {
  const message = withCovered(...covered);
  const pseudo = [
    ":method",
    "POST",
    ":path",
    "/api/v1/transaction",
    ":authority",
    "Example.com",
    ":scheme",
    "http",
  ];
  // The sample's first line is Host.
  return { ...message, rawHeaders: [...pseudo, ...message.rawHeaders.slice(2)] };
}
