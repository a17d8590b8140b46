import { component, now, vector, withLine } from "../hand/vector.mjs";

const at = (target, more = {}) => ({ message: { target, ...more } });
const param = (name) => `"@query-param";name="${name}"`;
const host = (value, more = {}) => ({ message: { headers: [["Host", value]], ...more } });
const none = { message: { headers: [] } };
const changed = (change) => ({
  arrives: (message) => ({ ...message, ...change }),
  code: "signature-mismatch",
});
// The policy asks for what can be asked for.
const unasked = { policy: { requiredComponents: [] }, received: false };

export const theme = "Derived components (RFC 9421 section 2.2) of requests, but for query parameters";
export const cases = [
  component("method", "@method is the method.", ['"@method"', "POST"]),
  component("method-case", "@method is case-sensitive and taken as sent.", ['"@method"', "post"], {
    message: { method: "post" },
  }),
  component("method-extension", "@method may be any token.", ['"@method"', "M-SEARCH"], {
    message: { method: "M-SEARCH" },
  }),
  component("method-changed", "Another method is another message.", ['"@method"', "POST"], {
    ...changed({ method: "PUT" }),
    received: [['"@method"', "PUT"]],
  }),
  component("method-case-changed", "Another letter case is another method.", ['"@method"', "POST"], {
    ...changed({ method: "Post" }),
    received: [['"@method"', "Post"]],
  }),
  component("path", "@path is the path without the query.", ['"@path"', "/a/b"], at("/a/b?c=d")),
  component("path-root", "@path of the root is one slash.", ['"@path"', "/"], at("/")),
  component(
    "path-encoded",
    "@path keeps percent-encoding as it is.",
    ['"@path"', "/a%20b/%c3%A4"],
    at("/a%20b/%c3%A4"),
  ),
  component("path-slash", "@path keeps a slash at its end.", ['"@path"', "/a/"], at("/a/")),
  component("path-inner-slashes", "@path keeps empty segments inside.", ['"@path"', "/a//b"], at("/a//b")),
  component(
    "path-parameters",
    "@path keeps what other characters a path may have.",
    ['"@path"', "/a;v=1,2/@b:c"],
    at("/a;v=1,2/@b:c"),
  ),
  component(
    "path-three-dots",
    "A segment of three dots is no dot segment.",
    ['"@path"', "/a/.../b"],
    at("/a/.../b"),
  ),
  component("path-changed", "Another path is another message.", ['"@path"', "/a"], {
    ...at("/a"),
    ...changed({ target: "/b" }),
    received: [['"@path"', "/b"]],
  }),
  component(
    "path-case-changed",
    "Another case of a percent-encoding is another path.",
    ['"@path"', "/%c3%a4"],
    {
      ...at("/%c3%a4"),
      ...changed({ target: "/%C3%A4" }),
      received: [['"@path"', "/%C3%A4"]],
    },
  ),
  component(
    "query",
    "@query is the query with its question mark.",
    ['"@query"', "?a=b&c=%20d"],
    at("/x?a=b&c=%20d"),
  ),
  component("query-empty", "@query of an empty query is the question mark.", ['"@query"', "?"], at("/x?")),
  component(
    "query-absent",
    "@query of a target without a query is the question mark too.",
    ['"@query"', "?"],
    at("/x"),
  ),
  component(
    "query-question-mark",
    "@query keeps later question marks.",
    ['"@query"', "?a?b=?"],
    at("/x?a?b=?"),
  ),
  component("query-order-changed", "@query is not sorted.", ['"@query"', "?a=1&b=2"], {
    ...at("/x?a=1&b=2"),
    ...changed({ target: "/x?b=2&a=1" }),
    received: [['"@query"', "?b=2&a=1"]],
  }),
  component(
    "request-target",
    "@request-target is path and query as sent.",
    ['"@request-target"', "/x?a=b"],
    at("/x?a=b"),
  ),
  component("request-target-changed", "@request-target covers the query.", ['"@request-target"', "/x?a=b"], {
    ...at("/x?a=b"),
    ...changed({ target: "/x?a=c" }),
    received: [['"@request-target"', "/x?a=c"]],
  }),
  component(
    "scheme-https",
    "@scheme is the scheme in lower case.",
    ['"@scheme"', "https"],
    at("/x", { scheme: "https" }),
  ),
  component(
    "scheme-http",
    "@scheme of an unencrypted request is http.",
    ['"@scheme"', "http"],
    at("/x", { scheme: "http" }),
  ),
  component("scheme-changed", "Another scheme is another message.", ['"@scheme"', "https"], {
    ...at("/x", { scheme: "https" }),
    ...changed({ scheme: "http" }),
    received: [['"@scheme"', "http"]],
  }),
  component(
    "scheme-unknown",
    "@scheme cannot be computed where the verifier does not know it.",
    ['"@scheme"', "https"],
    {
      code: "covered-field-missing",
      received: false,
    },
  ),
  component("authority", "@authority is the Host field.", ['"@authority"', "example.com"]),
  component(
    "authority-case",
    "@authority is in lower case.",
    ['"@authority"', "example.com"],
    host("EXAMPLE.com"),
  ),
  component(
    "authority-https-port",
    "@authority has no port 443 over https.",
    ['"@authority"', "example.com"],
    host("example.com:443", { scheme: "https" }),
  ),
  component(
    "authority-http-port",
    "@authority has no port 80 over http.",
    ['"@authority"', "example.com"],
    host("example.com:80", { scheme: "http" }),
  ),
  component(
    "authority-port",
    "@authority keeps another port.",
    ['"@authority"', "example.com:8080"],
    host("example.com:8080", { scheme: "https" }),
  ),
  component(
    "authority-other-default",
    "Port 80 is no default over https.",
    ['"@authority"', "example.com:80"],
    host("example.com:80", { scheme: "https" }),
  ),
  component(
    "authority-empty-port",
    "@authority has no empty port.",
    ['"@authority"', "example.com"],
    host("example.com:", { scheme: "https" }),
  ),
  component(
    "authority-ipv6",
    "@authority may be an IPv6 address.",
    ['"@authority"', "[2001:db8::1]"],
    host("[2001:DB8::1]:443", { scheme: "https" }),
  ),
  component(
    "authority-given",
    "An authority that the verifier knows replaces the Host field.",
    ['"@authority"', "pay.example"],
    {
      message: { authority: "pay.example" },
    },
  ),
  component(
    "authority-http2",
    "The line :authority of HTTP/2 stands for the Host field.",
    ['"@authority"', "example.com"],
    {
      message: { headers: [[":authority", "example.com"]] },
    },
  ),
  component(
    "authority-http2-and-host",
    "Host may stand beside :authority when both agree.",
    ['"@authority"', "example.com"],
    {
      message: {
        headers: [
          [":authority", "example.com"],
          ["host", "Example.com"],
        ],
      },
    },
  ),
  component("authority-changed", "Another server is another message.", ['"@authority"', "example.com"], {
    arrives: withLine("host", "example.org"),
    received: [['"@authority"', "example.org"]],
    code: "signature-mismatch",
  }),
  component(
    "authority-absent",
    "@authority cannot be computed without a Host field.",
    ['"@authority"', "example.com"],
    {
      ...none,
      code: "covered-field-missing",
      received: false,
    },
  ),
  component("authority-twice", "Two Host fields are two authorities.", ['"@authority"', "example.com"], {
    message: {
      headers: [
        ["Host", "example.com"],
        ["Host", "example.com"],
      ],
    },
    code: "authority-conflict",
    received: false,
  }),
  component(
    "authority-port-without-scheme",
    "Whether a port is the default one is not known without the scheme.",
    ['"@authority"', "example.com"],
    {
      ...host("example.com:443"),
      code: "covered-field-missing",
      received: false,
    },
  ),
  component(
    "target-uri",
    "@target-uri is scheme, authority and target.",
    ['"@target-uri"', "https://example.com/a?b=c"],
    at("/a?b=c", { scheme: "https" }),
  ),
  component(
    "target-uri-normal",
    "@target-uri has the authority in its normal form.",
    ['"@target-uri"', "https://example.com/a"],
    {
      message: { target: "/a", scheme: "https", headers: [["Host", "Example.Com:443"]] },
    },
  ),
  component(
    "target-uri-changed",
    "@target-uri covers the query.",
    ['"@target-uri"', "https://example.com/a?b=c"],
    {
      ...at("/a?b=c", { scheme: "https" }),
      ...changed({ target: "/a?b=d" }),
      received: [['"@target-uri"', "https://example.com/a?b=d"]],
    },
  ),
  component(
    "signature-params",
    "@signature-params is no component that can be covered.",
    ['"@signature-params"', ""],
    {
      ...unasked,
      code: "component-unsupported",
    },
  ),
  component(
    "unknown-derived",
    "A derived component that RFC 9421 does not have is refused.",
    ['"@body"', "x"],
    {
      ...unasked,
      code: "component-unsupported",
    },
  ),
  component("status-of-request", "A request has no @status.", ['"@status"', "200"], {
    ...unasked,
    code: "component-unsupported",
  }),
  component("derived-sf", "Derived components have no parameter sf.", ['"@method";sf', "POST"], {
    ...unasked,
    code: "component-parameter-unsupported",
  }),
  component(
    "derived-name",
    "Derived components other than @query-param have no name.",
    ['"@path";name="a"', "/"],
    {
      ...unasked,
      code: "component-parameter-unsupported",
    },
  ),
  component("request-req", "A request belongs to no other request.", ['"@method";req', "POST"], {
    ...unasked,
    code: "component-parameter-unsupported",
  }),
  vector("derived-all", "All derived components of one request, in any order.", {
    message: { target: "/a/b?c=d", scheme: "https" },
    time: now + 1,
    covered: [
      ['"@target-uri"', "https://example.com/a/b?c=d"],
      [param("c"), "d"],
      ['"@query"', "?c=d"],
      ['"@path"', "/a/b"],
      ['"@request-target"', "/a/b?c=d"],
      ['"@scheme"', "https"],
      ['"@authority"', "example.com"],
      ['"@method"', "POST"],
    ],
    policy: { requiredComponents: ["@method", "@authority", "@scheme", "@target-uri"] },
  }),
  component("derived-empty", "An at sign alone is no component.", ['"@"', ""], {
    ...unasked,
    code: "component-unsupported",
  }),
  component("derived-upper-case", "A derived component is in lower case.", ['"@Query"', "?"], {
    ...unasked,
    code: "component-unsupported",
  }),
  component("path-letter-case", "Another case of a letter is another path.", ['"@path"', "/a"], {
    ...at("/a"),
    ...changed({ target: "/A" }),
    received: [['"@path"', "/A"]],
  }),
  component("path-letter-encoded", "An encoded letter is another path.", ['"@path"', "/a"], {
    ...at("/a"),
    ...changed({ target: "/%61" }),
    received: [['"@path"', "/%61"]],
  }),
  component("path-slash-added", "A slash at the end is another path.", ['"@path"', "/a"], {
    ...at("/a"),
    ...changed({ target: "/a/" }),
    received: [['"@path"', "/a/"]],
  }),
  component("query-changed", "Another query is another message.", ['"@query"', "?to=b"], {
    ...at("/a?to=b"),
    ...changed({ target: "/a?to=c" }),
    received: [['"@query"', "?to=c"]],
  }),
];
