import { component, four, payment, vector } from "../hand/vector.mjs";

const bad = { received: false, code: "target-invalid" };
const target = (id, shows, text, value = text) =>
  component(`target-${id}`, shows, ['"@path"', value], { message: { target: text }, ...bad });
const conflict = { received: false, code: "authority-conflict" };
const authority = (id, shows, value) =>
  component(`authority-${id}`, shows, ['"@authority"', value.toLowerCase()], {
    message: { headers: [["Host", value]], scheme: "https" },
    received: false,
    code: "covered-field-invalid",
  });
const method = (id, shows, text) =>
  vector(`method-${id}`, shows, {
    message: { method: text },
    covered: [['"@method"', text], ...four.slice(1)],
    received: false,
    code: "method-invalid",
  });

export const theme =
  "Hostile targets, methods and authorities: what a router and a verifier could read in two ways";
export const cases = [
  target("absolute", "A target in absolute form.", "https://example.com/a", "/a"),
  target("absolute-http", "A target in absolute form with another scheme.", "http://other.example/a", "/a"),
  target("asterisk", "A target in asterisk form.", "*"),
  target("authority", "A target in authority form.", "example.com:443"),
  target("empty", "A target without a character.", "", "/"),
  target("no-slash", "A target that does not begin with a slash.", "a/b"),
  target("two-slashes", "A target that begins with two slashes names a server to some.", "//other.example/a"),
  target("three-slashes", "A target that begins with three slashes.", "///a"),
  target("dot", "A dot segment.", "/a/./b", "/a/b"),
  target("dot-dot", "A segment of two dots.", "/a/../b", "/b"),
  target("dot-end", "A dot segment at the end.", "/a/.", "/a/"),
  target("dot-dot-end", "Two dots at the end.", "/a/..", "/"),
  target("dot-encoded", "An encoded dot.", "/a/%2e%2e/b", "/b"),
  target("dot-half-encoded", "A dot and an encoded dot.", "/a/.%2E/b", "/b"),
  target(
    "dot-encoded-inside",
    "An encoded dot inside of a segment: some decode it before they route.",
    "/a%2eb",
    "/a.b",
  ),
  target("backslash", "A backslash, which some read as a slash.", "/a\\b", "/a/b"),
  target("backslash-first", "A backslash behind the first slash.", "/\\other.example", "/"),
  target("fragment", "A fragment.", "/a#b", "/a"),
  target("fragment-in-query", "A fragment behind a query.", "/a?b#c", "/a"),
  target("backslash-in-query", "A backslash in a query.", "/a?b\\c", "/a"),
  target("space", "A space.", "/a b"),
  target("tab", "A tab.", "/a\tb"),
  target("line-feed", "A line feed, behind which a line of the base could stand.", '/a\n"@method": GET'),
  target("carriage-return", "A carriage return.", "/a\rb"),
  target("nul", "A NUL.", "/a\u0000b"),
  target("delete", "A DEL.", "/a\u007fb"),
  target("not-ascii", "A character beyond ASCII.", "/\u00e4"),
  target("nbsp", "A no-break space.", "/a\u00a0"),
  component(
    "target-dots-in-query",
    "Dots in a query are no dot segments.",
    ['"@request-target"', "/a?b=/../c"],
    { message: { target: "/a?b=/../c" } },
  ),
  component("target-url-in-query", "A URL in a query is a query.", ['"@query"', "?u=https://a.example//b"], {
    message: { target: "/a?u=https://a.example//b" },
  }),
  component("target-encoded-slash", "An encoded slash stays as it is.", ['"@path"', "/a%2Fb"], {
    message: { target: "/a%2Fb" },
  }),
  component("target-encoded-nul", "An encoded NUL stays as it is.", ['"@path"', "/a%00b"], {
    message: { target: "/a%00b" },
  }),
  component(
    "target-hidden-file",
    "A segment that begins with a dot is no dot segment.",
    ['"@path"', "/.well-known/a"],
    { message: { target: "/.well-known/a" } },
  ),
  method("empty", "A method without a character.", ""),
  method("space", "A method with a space.", "POST "),
  method(
    "line-feed",
    "A method with a line feed, behind which a line of the base could stand.",
    'POST\n"@path": /b',
  ),
  method("colon", "A method with a colon.", "POST:"),
  method("not-ascii", "A method beyond ASCII.", "P\u00d6ST"),
  component(
    "authority-conflict-host",
    "Host names another server than :authority.",
    ['"@authority"', "example.com"],
    {
      message: {
        headers: [
          [":authority", "example.com"],
          ["host", "other.example"],
        ],
      },
      ...conflict,
    },
  ),
  component("authority-conflict-uncovered", "The same where no component needs it.", ['"@method"', "POST"], {
    message: {
      headers: [
        [":authority", "example.com"],
        ["host", "other.example"],
      ],
    },
    ...conflict,
  }),
  component("authority-conflict-two", "Two lines :authority.", ['"@authority"', "example.com"], {
    message: {
      headers: [
        [":authority", "example.com"],
        [":authority", "example.com"],
      ],
    },
    ...conflict,
  }),
  authority("userinfo", "An authority with user information.", "user@example.com"),
  authority("path", "An authority with a path.", "example.com/a"),
  authority("space", "An authority with a space.", "example.com other.example"),
  authority("question-mark", "An authority with a question mark.", "example.com?a"),
  authority("port-text", "A port that is no number.", "example.com:https"),
  authority("port-long", "A port of six digits.", "example.com:000443"),
  authority("two-ports", "An authority with two ports.", "example.com:443:443"),
  authority("ipv6-open", "An IPv6 address without its bracket.", "[2001:db8::1"),
  authority("empty", "An authority without a character.", ""),
  component(
    "authority-kelvin",
    "A character that lower-casing makes ASCII is none.",
    ['"@authority"', "k.example"],
    {
      message: { headers: [["Host", "\u212a.example"]] },
      received: false,
      code: "covered-field-invalid",
    },
  ),
  component("pseudo-header", "A pseudo-header is no field.", ['":path"', "/a"], {
    message: { headers: [[":path", "/a"]] },
    policy: { requiredComponents: [] },
    received: false,
    code: "component-name-invalid",
  }),
  target("query-alone", "A query without a path.", "?a=1", "/"),
  target("control", "A control character.", "/a\u0001"),
  component("target-dots-inside", "Dots inside of a segment are no dot segment.", ['"@path"', "/a..b"], {
    message: { target: "/a..b" },
  }),
  component("target-dots-three", "Three dots are no dot segment.", ['"@path"', "/..."], {
    message: { target: "/..." },
  }),
  component("target-dot-last", "A segment that ends with a dot is no dot segment.", ['"@path"', "/a."], {
    message: { target: "/a." },
  }),
  vector("pseudo-headers", "Pseudo-header lines of HTTP/2 may stand before the fields.", {
    message: {
      headers: [
        [":method", "POST"],
        [":path", "/api/v1/transaction"],
        [":authority", "Example.com"],
        [":scheme", "http"],
        ...payment.headers.slice(1),
      ],
    },
    covered: [...four, ['"@authority"', "example.com"]],
  }),
  component("pseudo-authority", "The line :authority is no field.", ['":authority"', "example.com"], {
    message: { headers: [[":authority", "example.com"]] },
    policy: { requiredComponents: [] },
    received: false,
    code: "component-name-invalid",
  }),
];
