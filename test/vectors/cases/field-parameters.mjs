import { component, vector, withLine } from "../hand/vector.mjs";

const lines = (...added) => ({ message: { headers: added } });
const refused = (code) => ({ code, received: false });
const unasked = (code) => ({ policy: { requiredComponents: [] }, ...refused(code) });
const list = { policy: { requiredComponents: ['"x-list";sf'], fieldTypes: { "x-list": "list" } } };

export const theme = "Parameters of fields (RFC 9421 sections 2.1.1 to 2.1.4): sf, key, bs, tr";
export const cases = [
  component(
    "sf-dictionary",
    "sf writes a dictionary anew.",
    ['"priority";sf', "u=1, i"],
    lines(["Priority", " u=1 ,  i=?1"]),
  ),
  component(
    "sf-lines",
    "sf reads all lines as one dictionary.",
    ['"priority";sf', "u=1, i"],
    lines(["Priority", "u=1"], ["Priority", "i"]),
  ),
  component(
    "sf-item",
    "sf writes an item anew.",
    ['"sec-fetch-mode";sf', "cors;a=1"],
    lines(["Sec-Fetch-Mode", "cors; a=1"]),
  ),
  component("sf-list", "sf writes a list anew.", ['"x-list";sf', '1, "a";q=0.5, (b c);d'], {
    ...lines(["X-List", '1,"a"; q=0.50,( b  c );d=?1']),
    ...list,
  }),
  component("sf-integer", "sf writes numbers in their one form.", ['"x-list";sf', "7, 1.0, -0.5, 0.0, 0"], {
    ...lines(["X-List", "007, 1.000, -0.50, -0.0, -0"]),
    ...list,
  }),
  component("sf-string", "sf keeps escapes of strings.", ['"x-list";sf', '"a\\"b\\\\"'], {
    ...lines(["X-List", '"a\\"b\\\\"']),
    ...list,
  }),
  component(
    "sf-binary",
    "sf writes bytes as they are.",
    ['"content-digest";sf', "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"],
    { message: {} },
  ),
  component("sf-unknown", "sf needs a field whose type is known.", ['"x-note";sf', "a"], {
    ...lines(["X-Note", "a"]),
    ...unasked("component-parameter-unsupported"),
  }),
  component("sf-malformed", "sf of what is not structured is refused.", ['"priority";sf', "u=1"], {
    ...lines(["Priority", "u=1,,i"]),
    ...refused("covered-field-invalid"),
  }),
  component(
    "sf-twice",
    "sf of a dictionary that says a key twice is refused, and not resolved.",
    ['"priority";sf', "u=2"],
    { ...lines(["Priority", "u=1, u=2"]), ...refused("covered-field-invalid") },
  ),
  component("sf-value-changed", "sf compares values.", ['"priority";sf', "u=1"], {
    ...lines(["Priority", "u=2"]),
    received: [['"priority";sf', "u=2"]],
    code: "signature-mismatch",
  }),
  component(
    "key-integer",
    "key is a member of a dictionary.",
    ['"priority";key="u"', "1"],
    lines(["Priority", "i, u=1"]),
  ),
  component(
    "key-flag",
    "key of a member without a value is true.",
    ['"priority";key="i"', "?1"],
    lines(["Priority", "u=1, i"]),
  ),
  component(
    "key-parameters",
    "key keeps the parameters of a member.",
    ['"priority";key="u"', '1;a="b"'],
    lines(["Priority", 'u=1; a="b"']),
  ),
  component("key-inner-list", "key of an inner list writes it anew.", ['"x-dict";key="a"', "(1 2);b"], {
    ...lines(["X-Dict", "a=( 1  2 );b"]),
    policy: { requiredComponents: ['"x-dict";key="a"'], fieldTypes: { "x-dict": "dictionary" } },
  }),
  component(
    "key-of-digest",
    "key picks one digest.",
    ['"content-digest";key="sha-256"', ":X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"],
    { message: {} },
  ),
  component("key-other-member", "Another member may change.", ['"priority";key="u"', "1"], {
    ...lines(["Priority", "u=1, i"]),
    arrives: withLine("priority", "u=1, x=2"),
    received: [['"priority";key="u"', "1"]],
  }),
  component(
    "key-and-sf",
    "key and sf may stand together.",
    ['"priority";sf;key="u"', "1"],
    lines(["Priority", "u=1"]),
  ),
  vector("key-two", "Two members are two components.", {
    message: { headers: [["Priority", "u=1, i"]] },
    covered: [
      ['"priority";key="i"', "?1"],
      ['"priority";key="u"', "1"],
    ],
    policy: { requiredComponents: ['"priority";key="u"'] },
  }),
  component("key-absent", "A member that is not there has no value.", ['"priority";key="x"', ""], {
    ...lines(["Priority", "u=1"]),
    ...refused("covered-field-missing"),
  }),
  component("key-twice", "A dictionary that says a member twice is refused.", ['"priority";key="u"', "2"], {
    ...lines(["Priority", "u=1, u=2"]),
    ...refused("covered-field-invalid"),
  }),
  component("key-of-list", "A list has no members with keys.", ['"x-list";key="a"', "1"], {
    ...lines(["X-List", "a"]),
    policy: { requiredComponents: [], fieldTypes: { "x-list": "list" } },
    ...refused("component-parameter-unsupported"),
  }),
  component("key-token", "A key is a string.", ['"priority";key=u', "1"], {
    ...lines(["Priority", "u=1"]),
    ...unasked("component-parameter-unsupported"),
  }),
  component(
    "bs",
    "bs wraps the bytes of a line.",
    ['"x-note";bs', ":YSwgYg==:"],
    lines(["X-Note", " a, b "]),
  ),
  component(
    "bs-lines",
    "bs wraps each line by itself.",
    ['"x-note";bs', ":YQ==:, :YiwgYw==:"],
    lines(["X-Note", "a"], ["X-Note", "b, c"]),
  ),
  component(
    "bs-bytes",
    "bs takes bytes beyond ASCII; a character of a header line is one byte.",
    ['"x-note";bs', ":w6Q=:"],
    lines(["X-Note", "\u00c3\u00a4"]),
  ),
  component("bs-joined", "bs tells joined lines from separate ones.", ['"x-note";bs', ":YQ==:, :Yg==:"], {
    ...lines(["X-Note", "a, b"]),
    received: [['"x-note";bs', ":YSwgYg==:"]],
    code: "signature-mismatch",
  }),
  component("bs-sf", "bs and sf contradict each other.", ['"priority";bs;sf', "u=1"], {
    ...lines(["Priority", "u=1"]),
    ...unasked("component-parameter-unsupported"),
  }),
  component("bs-key", "bs and key contradict each other.", ['"priority";bs;key="u"', "1"], {
    ...lines(["Priority", "u=1"]),
    ...unasked("component-parameter-unsupported"),
  }),
  component("tr", "tr is a field of the trailers.", ['"x-sum";tr', "abc"], {
    message: { trailers: [["X-Sum", "abc"]] },
  }),
  vector("tr-and-header", "A field of the trailers is another one than that of the headers.", {
    message: { headers: [["X-Sum", "1"]], trailers: [["X-Sum", "2"]] },
    covered: [
      ['"x-sum"', "1"],
      ['"x-sum";tr', "2"],
    ],
    policy: { requiredComponents: ["x-sum", '"x-sum";tr'] },
  }),
  component("tr-key", "tr goes with key.", ['"repr-digest";key="sha-256";tr', ":AAAA:"], {
    message: { trailers: [["Repr-Digest", "sha-256=:AAAA:"]] },
  }),
  component("tr-bs", "tr goes with bs.", ['"x-sum";bs;tr', ":YQ==:"], {
    message: { trailers: [["X-Sum", "a"]] },
  }),
  component("tr-moved", "A field that moved to the headers is not in the trailers.", ['"x-sum";tr', "abc"], {
    message: { headers: [["X-Sum", "abc"]], trailers: [] },
    ...refused("covered-field-missing"),
  }),
  component("tr-moved-back", "A field of the trailers is not in the headers.", ['"x-sum"', "abc"], {
    message: { trailers: [["X-Sum", "abc"]] },
    ...refused("covered-field-missing"),
  }),
  component("tr-changed", "Another value of a trailer is another message.", ['"x-sum";tr', "abc"], {
    message: { trailers: [["X-Sum", "abd"]] },
    received: [['"x-sum";tr', "abd"]],
    code: "signature-mismatch",
  }),
  component(
    "tr-unknown",
    "tr cannot be computed where the trailers are not known.",
    ['"x-sum";tr', "abc"],
    refused("component-parameter-unsupported"),
  ),
];
