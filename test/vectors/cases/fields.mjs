import { component, four, payment, vector, withLine } from "../hand/vector.mjs";

const lines = (...added) => ({ message: { headers: added } });
const refused = (code) => ({ code, received: false });
const unasked = (code) => ({ policy: { requiredComponents: [] }, ...refused(code) });

export const theme = "Fields (RFC 9421 section 2.1), and how components are named";
export const cases = [
  component("field", "A field is its value.", ['"x-note"', "a b"], lines(["X-Note", "a b"])),
  component(
    "field-trimmed",
    "Whitespace around a value is not part of it.",
    ['"x-note"', "a  b"],
    lines(["X-Note", " \ta  b\t "]),
  ),
  component("field-empty", "A field may be empty.", ['"x-note"', ""], lines(["X-Note", ""])),
  component(
    "field-lines",
    "Lines of a field are joined by a comma and a space, in their order.",
    ['"x-note"', "a, b,c, , d"],
    lines(["X-Note", "a "], ["Other", "x"], ["x-note", " b,c"], ["X-NOTE", ""], ["X-Note", "d"]),
  ),
  component("field-lines-swapped", "The order of lines counts.", ['"x-note"', "a, b"], {
    ...lines(["X-Note", "b"], ["X-Note", "a"]),
    received: [['"x-note"', "b, a"]],
    code: "signature-mismatch",
  }),
  component("field-line-added", "A line that was added is another value.", ['"x-note"', "a"], {
    ...lines(["X-Note", "a"], ["X-Note", "b"]),
    received: [['"x-note"', "a, b"]],
    code: "signature-mismatch",
  }),
  component(
    "field-joined",
    "Lines that an intermediary joined are the same value.",
    ['"x-note"', "a, b"],
    lines(["X-Note", "a, b"]),
  ),
  component("field-not-covered", "What is not covered may change.", ['"x-note"', "a"], {
    ...lines(["X-Note", "a"], ["X-Other", "a"]),
    arrives: withLine("x-other", "b"),
    received: [['"x-note"', "a"]],
  }),
  component("field-changed", "Another value is another message.", ['"x-note"', "a"], {
    ...lines(["X-Note", "b"]),
    received: [['"x-note"', "b"]],
    code: "signature-mismatch",
  }),
  component(
    "field-absent",
    "A field that is not there has no value.",
    ['"x-note"', ""],
    refused("covered-field-missing"),
  ),
  component("field-upper-case", "A component name is in lower case.", ['"X-Note"', "a"], {
    ...lines(["X-Note", "a"]),
    ...unasked("component-name-invalid"),
  }),
  component("field-name-empty", "A component has a name.", ['""', "a"], unasked("component-name-invalid")),
  component(
    "field-name-space",
    "A component name is a field name.",
    ['"x note"', "a"],
    unasked("component-name-invalid"),
  ),
  component(
    "field-name-colon",
    "A component name with a colon could be read as two lines.",
    ['"x-note: a"', "a"],
    unasked("component-name-invalid"),
  ),
  component("field-not-ascii", "A value beyond ASCII is refused without bs.", ['"x-note"', "ä"], {
    ...lines(["X-Note", "\u00e4"]),
    ...refused("covered-field-invalid"),
  }),
  component(
    "field-line-feed",
    "A value never holds a line feed, which would be a line of the base.",
    ['"x-note"', "a"],
    { ...lines(["X-Note", 'a\n"@method": GET']), ...refused("covered-field-invalid") },
  ),
  component(
    "field-once",
    "A field of one value must not come twice.",
    ['"content-type"', "text/plain, text/html"],
    {
      ...lines(["Content-Type", "text/plain"], ["Content-Type", "text/html"]),
      ...refused("covered-field-repeated"),
    },
  ),
  component(
    "field-host",
    "Host may be covered like any field.",
    ['"host"', "Example.com"],
    lines(["Host", "Example.com"]),
  ),
  component(
    "field-of-signature",
    "A signature may cover a field that holds quotation marks.",
    ['"x-note"', '"@path": /b'],
    lines(["X-Note", '"@path": /b']),
  ),
  vector("component-twice", "A component is covered once.", {
    covered: [...four, ['"@method"', "POST"]],
    ...refused("component-duplicate"),
  }),
  vector("component-twice-parameters", "Parameters in another order are the same component.", {
    message: { headers: [...payment.headers, ["Priority", "u=1"]] },
    covered: [...four, ['"priority";sf;key="u"', "1"], ['"priority";key="u";sf', "1"]],
    ...refused("component-duplicate"),
  }),
  vector("component-with-and-without", "A component with a parameter is another one than without.", {
    message: { headers: [...payment.headers, ["Priority", "u=1,i"]] },
    covered: [...four, ['"priority"', "u=1,i"], ['"priority";sf', "u=1, i"]],
  }),
  component("unknown-parameter", "An unknown parameter of a component is refused.", ['"x-note";x', "a"], {
    ...lines(["X-Note", "a"]),
    ...unasked("component-parameter-unsupported"),
  }),
  component(
    "parameter-false",
    "A parameter that is false is no parameter of RFC 9421.",
    ['"x-note";bs=?0', "a"],
    { ...lines(["X-Note", "a"]), ...unasked("component-parameter-unsupported") },
  ),
  component("parameter-valued", "A parameter that is a flag has no other value.", ['"x-note";bs=1', "a"], {
    ...lines(["X-Note", "a"]),
    ...unasked("component-parameter-unsupported"),
  }),
  component(
    "field-absent-undefined",
    "A field that is not there is not the text undefined.",
    ['"x-note"', "undefined"],
    refused("covered-field-missing"),
  ),
  component(
    "field-constructor",
    "A field is no member that every object has.",
    ['"constructor"', ""],
    refused("covered-field-missing"),
  ),
  component("field-proto", "The same for __proto__.", ['"__proto__"', ""], refused("covered-field-missing")),
  component("field-tab", "A tab inside of a value is refused.", ['"x-note"', "a\tb"], {
    ...lines(["X-Note", "a\tb"]),
    ...refused("covered-field-invalid"),
  }),
  component("field-key-once", "An Idempotency-Key must not come twice.", ['"idempotency-key"', "a, b"], {
    ...lines(["Idempotency-Key", "a"], ["Idempotency-Key", "b"]),
    ...refused("covered-field-repeated"),
  }),
  vector("field-twice", "A field is covered once.", {
    covered: [...four, ['"content-type"', "application/json"]],
    ...refused("component-duplicate"),
  }),
  vector("field-of-request", "A field of a request belongs to no other request.", {
    covered: [...four.slice(0, 3), [`${four[3][0]};req`, four[3][1]]],
    ...refused("component-parameter-unsupported"),
  }),
];
