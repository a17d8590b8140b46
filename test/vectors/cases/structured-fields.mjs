import { four, now, vector } from "../hand/vector.mjs";

const invalid = { received: false, code: "field-invalid" };
const limit = { received: false, code: "field-limit" };
const missing = { received: false, code: "signature-missing" };
// What is sent in place of the fields as they should be.
const sent = (id, shows, fields, verdict = invalid) => vector(id, shows, { fields, ...verdict });
const inputAs = (id, shows, change, verdict) =>
  sent(
    id,
    shows,
    ({ input, base64 }) => [
      ["Signature-Input", change(input)],
      ["Signature", `sig1=:${base64}:`],
    ],
    verdict,
  );
const good = {};
const many = (count, make) => Array.from({ length: count }, (_each, index) => make(index));
const fieldsOf = (count) => many(count, (index) => [`"x-${index}"`, "a"]);
const withFields = (count, verdict) => ({
  message: { headers: many(count, (index) => [`X-${index}`, "a"]) },
  covered: fieldsOf(count),
  policy: { requiredComponents: ["x-0"] },
  ...verdict,
});

export const theme = "Structured fields (RFC 8941): what has other forms, and what has two readings or none";
export const cases = [
  inputAs(
    "input-spaces",
    "Spaces in an inner list are not part of its value.",
    (input) =>
      `  sig1=${input.replace("(", "(  ").replace(" ", "   ").replace(")", " )").replaceAll(";", ";  ")}  `,
    good,
  ),
  inputAs("input-flag-written", "A flag may be written as ?1.", (input) => `sig1=${input}`, {
    ...good,
    parameters: { x: true },
  }),
  vector("input-flag-as-value", "A flag that is written as ?1 is the flag alone in the base.", {
    parameters: { x: true },
    input: (input) => input.replace(";x", ";x=?1"),
  }),
  vector("input-number-form", "A number has one form in the base.", {
    parameters: { x: "7", y: "1.5" },
    input: (input) => input.replace("x=7", "x=007").replace("y=1.5", "y=1.500"),
  }),
  sent(
    "input-two-lines",
    "Members of a field may stand on several lines.",
    ({ input, base64 }) => [
      ["Signature-Input", `sig1=${input}`],
      ["Signature", `sig1=:${base64}:`],
      ["Signature-Input", `other=("@method");created=${now}`],
      ["Signature", "other=:AAAA:"],
    ],
    good,
  ),
  sent(
    "input-field-case",
    "Names of fields are not case-sensitive.",
    ({ input, base64 }) => [
      ["SIGNATURE-INPUT", `sig1=${input}`],
      ["signature", `sig1=:${base64}:`],
    ],
    good,
  ),
  inputAs(
    "input-label-alone",
    "A label of Signature-Input without a signature is not looked at.",
    (input) => `sig1=${input}, other=("@method")`,
    good,
  ),
  sent(
    "input-absent",
    "Signature-Input is not there.",
    ({ base64 }) => [["Signature", `sig1=:${base64}:`]],
    missing,
  ),
  inputAs("input-empty", "Signature-Input is empty.", () => ""),
  inputAs("input-comma-end", "A comma at the end.", (input) => `sig1=${input},`),
  inputAs("input-comma-start", "A comma at the start.", (input) => `,sig1=${input}`),
  inputAs("input-semicolon", "A semicolon between members.", (input) => `sig1=${input}; other=()`),
  inputAs("input-label-upper-case", "A label in upper case.", (input) => `Sig1=${input}`),
  inputAs("input-label-digit", "A label that begins with a digit.", (input) => `1sig=${input}`),
  inputAs("input-label-quoted", "A label in quotation marks.", (input) => `"sig1"=${input}`),
  inputAs("input-no-label", "An inner list without a label.", (input) => input),
  inputAs(
    "input-label-twice",
    "A label that comes twice: the last one would count, or the first.",
    (input) => `sig1=("@method"), sig1=${input}`,
  ),
  sent("label-twice-lines", "A label that comes twice on two lines.", ({ input, base64 }) => [
    ["Signature-Input", `sig1=${input}`],
    ["Signature-Input", `sig1=${input}`],
    ["Signature", `sig1=:${base64}:`],
  ]),
  inputAs(
    "input-parameter-twice",
    "A parameter that comes twice.",
    (input) => `sig1=${input};created=${now}`,
  ),
  inputAs("input-parameter-upper-case", "A parameter in upper case.", (input) => `sig1=${input};Tag="a"`),
  inputAs("input-parameter-space", "A space before a semicolon.", (input) => `sig1=${input} ;tag="a"`),
  inputAs(
    "input-component-parameter-twice",
    "A parameter of a component that comes twice.",
    (input) => `sig1=${input.replace('"@method"', '"@method";req;req')}`,
  ),
  inputAs(
    "input-no-separator",
    "Components without a space between them.",
    (input) => `sig1=${input.replace(" ", "")}`,
  ),
  inputAs("input-tab", "A tab between components.", (input) => `sig1=${input.replace(" ", "\t")}`),
  inputAs("input-comma-inside", "A comma between components.", (input) => `sig1=${input.replace(" ", ", ")}`),
  inputAs("input-unclosed", "An inner list without an end.", (input) => `sig1=${input.replace(")", "")}`),
  inputAs("input-nested", "An inner list in another.", (input) => `sig1=${input.replace("(", "((")}`),
  inputAs(
    "input-component-token",
    "A component that is a token.",
    (input) => `sig1=${input.replace('"content-type"', "content-type")}`,
  ),
  inputAs(
    "input-component-bytes",
    "A component that is a byte sequence.",
    (input) => `sig1=${input.replace('"content-type"', ":YQ==:")}`,
  ),
  inputAs("input-item", "A member that is no inner list.", () => 'sig1="@method"'),
  inputAs("input-flag-member", "A member without a value.", (input) => `sig1=${input}, other`),
  inputAs(
    "input-string-unclosed",
    "A string without an end.",
    (input) => `sig1=${input.replace('keyid="test-key"', 'keyid="test-key')}`,
  ),
  inputAs("input-string-escape", "An escape that strings do not have.", (input) => `sig1=${input};x="a\\n"`),
  inputAs("input-string-not-ascii", "A string beyond ASCII.", (input) => `sig1=${input};x="\u00e4"`),
  inputAs("input-integer-long", "An integer of 16 digits.", (input) => `sig1=${input};x=1234567890123456`),
  inputAs(
    "input-decimal-long",
    "A decimal of four digits behind the point.",
    (input) => `sig1=${input};x=1.2345`,
  ),
  inputAs(
    "input-decimal-open",
    "A decimal without digits behind the point.",
    (input) => `sig1=${input};x=1.`,
  ),
  inputAs("input-plus", "A number with a plus sign.", (input) => `sig1=${input};x=+1`),
  inputAs("input-minus", "A minus sign without a number.", (input) => `sig1=${input};x=-`),
  inputAs("input-boolean", "A boolean that is neither 0 nor 1.", (input) => `sig1=${input};x=?2`),
  inputAs(
    "input-value-empty",
    "A parameter with an equals sign and no value.",
    (input) => `sig1=${input};x=`,
  ),
  inputAs("input-date", "A Date, which RFC 8941 does not have.", (input) => `sig1=${input};x=@1800000000`),
  inputAs(
    "input-display-string",
    "A Display String, which RFC 8941 does not have.",
    (input) => `sig1=${input};x=%"a"`,
  ),
  vector("sixteen-components", "A signature may cover sixteen components.", withFields(16, good)),
  vector("limit-components", "This engine takes no more than sixteen components.", withFields(17, limit)),
  inputAs(
    "limit-labels",
    "This engine takes no more than four labels.",
    (input) => `sig1=${input}, a=(), b=(), c=(), d=()`,
    limit,
  ),
  inputAs(
    "limit-parameters",
    "This engine takes no more than eight parameters.",
    (input) => `sig1=${input};a;b;c;d`,
    limit,
  ),
  inputAs(
    "limit-length",
    "This engine takes no field of more than 4,096 characters.",
    (input) => `sig1=${input};x="${"a".repeat(4096)}"`,
    limit,
  ),
  vector("keyid-256", "A keyid may have 256 characters, of which nobody knows this one.", {
    parameters: { keyid: `"${"k".repeat(256)}"` },
    code: "key-unknown",
  }),
  vector("keyid-257", "This engine takes no keyid of more.", {
    parameters: { keyid: `"${"k".repeat(257)}"` },
    code: "keyid-invalid",
  }),
  vector("nonce-128", "A nonce may have 128 characters.", { parameters: { nonce: `"${"n".repeat(128)}"` } }),
  vector("nonce-129", "This engine takes no nonce of more.", {
    parameters: { nonce: `"${"n".repeat(129)}"` },
    code: "nonce-invalid",
  }),
  inputAs(
    "input-reordered",
    "Components in another order than signed.",
    (input) => `sig1=${input.replace(`${four[0][0]} ${four[1][0]}`, `${four[1][0]} ${four[0][0]}`)}`,
    { received: false, code: "signature-mismatch" },
  ),
  inputAs("input-parameter-added", "A parameter that was not signed.", (input) => `sig1=${input};x=1`, {
    received: false,
    code: "signature-mismatch",
  }),
  inputAs(
    "input-expires-changed",
    "A signature whose end was put off.",
    (input) => `sig1=${input.replace(`expires=${now + 60}`, `expires=${now + 59}`)}`,
    { received: false, code: "signature-mismatch" },
  ),
  inputAs(
    "input-number-is-text",
    "1 is another value than 1.0.",
    (input) => `sig1=${input.replace("x=1", "x=1.0")}`,
    { parameters: { x: "1" }, received: false, code: "signature-mismatch" },
  ),
  inputAs(
    "input-field-space",
    "Spaces and tabs around a field are not part of it.",
    (input) => ` \tsig1=${input}\t `,
    good,
  ),
  inputAs(
    "input-comma-space",
    "Spaces and tabs may stand around a comma.",
    (input) => `sig1=${input}\t ,\t other=("@method")`,
    good,
  ),
  inputAs("four-labels", "A field may have four labels.", (input) => `a=(), b=(), c=(), sig1=${input}`, good),
  vector("eight-parameters", "A signature may have eight parameters.", {
    parameters: { a: "1", b: "?0", c: ":AA==:" },
  }),
  vector("nonce-escapes", "A parameter may hold escaped quotation marks and backslashes.", {
    parameters: { nonce: String.raw`"a\"b\\c"` },
  }),
  vector("length-4096", "A field may have 4,096 characters.", {
    parameters: { tag: `"${"x".repeat(3949)}"` },
  }),
  vector("limit-length-4097", "This engine takes no field of a character more.", {
    parameters: { tag: `"${"x".repeat(3950)}"` },
    ...limit,
  }),
  inputAs(
    "limit-component-parameters",
    "This engine takes no component with more than eight parameters.",
    () => 'sig1=("a";a;b;c;d;e;f;g;h;i)',
    limit,
  ),
  inputAs("input-string-quote", "A quotation mark in a string.", (input) => `sig1=${input};x="a"b"`),
  inputAs("input-string-escape-end", "An escape at the end.", (input) => `sig1=${input};x="a\\`),
  inputAs("input-string-control", "A control character in a string.", (input) => `sig1=${input};x="a\u0000"`),
  inputAs("input-string-delete", "A DEL in a string.", (input) => `sig1=${input};x="a\u007f"`),
  inputAs("input-string-line", "A line feed in a string.", (input) => `sig1=${input};x="a\nb"`),
];
