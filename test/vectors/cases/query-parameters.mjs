import { component, vector } from "../hand/vector.mjs";

const at = (target, more = {}) => ({ message: { target, ...more } });
const param = (name) => `"@query-param";name="${name}"`;
const changed = (change) => ({
  arrives: (message) => ({ ...message, ...change }),
  code: "signature-mismatch",
});
// The policy asks for what can be asked for.
const unasked = { policy: { requiredComponents: [] }, received: false };

export const theme = "Query parameters (RFC 9421 section 2.2.8)";
export const cases = [
  component(
    "query-param",
    "@query-param is the value of one parameter.",
    [param("id"), "7"],
    at("/x?a=b&id=7"),
  ),
  component(
    "query-param-plus",
    "A plus is a space, written as %20.",
    [param("id"), "a%20b"],
    at("/x?id=a+b"),
  ),
  component(
    "query-param-encoded",
    "Values are decoded and encoded again.",
    [param("id"), "%C3%A4~".replace("~", "%7E")],
    at("/x?id=%c3%a4~"),
  ),
  component(
    "query-param-needless",
    "What needs no percent-encoding loses it.",
    [param("id"), "a-b_c.d*"],
    at("/x?id=%61%2Db%5Fc%2Ed%2A"),
  ),
  component("query-param-empty", "A value may be empty.", [param("id"), ""], at("/x?id=")),
  component("query-param-no-equals", "A name alone has an empty value.", [param("id"), ""], at("/x?id&b=c")),
  component(
    "query-param-equals",
    "What follows the first equals sign is the value.",
    [param("id"), "a%3Db"],
    at("/x?id=a=b"),
  ),
  component(
    "query-param-name-encoded",
    "The name is written as it is encoded.",
    [param("a%20b"), "1"],
    at("/x?a+b=1"),
  ),
  component(
    "query-param-name-unencoded",
    "A name that is not written as it is encoded is no name.",
    [param("a b"), "1"],
    {
      ...at("/x?a+b=1"),
      code: "covered-field-missing",
      received: false,
    },
  ),
  vector("query-param-two", "Two parameters are two components.", {
    ...at("/x?b=2&a=1"),
    covered: [
      [param("a"), "1"],
      [param("b"), "2"],
    ],
    policy: { requiredComponents: [param("a"), param("b")] },
  }),
  component("query-param-changed", "Another value is another message.", [param("id"), "7"], {
    ...at("/x?id=7"),
    ...changed({ target: "/x?id=8" }),
    received: [[param("id"), "8"]],
  }),
  component("query-param-absent", "A parameter that is not in the query has no value.", [param("id"), ""], {
    ...at("/x?a=b"),
    code: "covered-field-missing",
    received: false,
  }),
  component(
    "query-param-twice",
    "A parameter that is in the query twice must not be covered.",
    [param("id"), "7"],
    {
      ...at("/x?id=7&id=8"),
      code: "covered-field-repeated",
      received: false,
    },
  ),
  component("query-param-twice-encoded", "Two spellings of a name are one name.", [param("id"), "7"], {
    ...at("/x?id=7&%69d=8"),
    code: "covered-field-repeated",
    received: false,
  }),
  component(
    "query-param-malformed",
    "A percent sign without two digits is no encoding.",
    [param("id"), "7"],
    {
      ...at("/x?id=7&a=%zz"),
      code: "covered-field-invalid",
      received: false,
    },
  ),
  component(
    "query-param-not-utf8",
    "A value that is not UTF-8 would be read in two ways.",
    [param("id"), "%FF"],
    {
      ...at("/x?id=%FF"),
      code: "covered-field-invalid",
      received: false,
    },
  ),
  component(
    "query-param-without-name",
    "@query-param without a name is no component.",
    ['"@query-param"', "7"],
    {
      ...at("/x?id=7"),
      ...unasked,
      code: "component-unsupported",
    },
  ),
  component("query-param-name-token", "The name has to be a string.", ['"@query-param";name=id', "7"], {
    ...at("/x?id=7"),
    ...unasked,
    code: "component-parameter-unsupported",
  }),
];
