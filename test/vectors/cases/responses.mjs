import { component, digest, four, fourNames, now, payment, vector } from "../hand/vector.mjs";

// The payment that was signed, and so has a signature that the answer can cover.
const signatureOfRequest = "c2lnbmF0dXJlIG9mIHRoZSByZXF1ZXN0";
const request = {
  ...payment,
  scheme: "https",
  headers: [
    ...payment.headers,
    ["Signature-Input", `sig1=("@method" "@path");created=${now};keyid="test-key"`],
    ["Signature", `sig1=:${signatureOfRequest}:`],
    ["Priority", "u=1, i"],
  ],
};
const answer = {
  status: 201,
  headers: [
    ["Content-Type", "application/json"],
    ["Content-Digest", digest],
  ],
  request,
};
const refused = (code) => ({ code, received: false });
const unasked = (code) => ({ policy: { requiredComponents: [] }, ...refused(code) });
const receipt = [
  ['"@status"', "201"],
  ['"content-digest"', digest],
  ['"@method";req', "POST"],
  ['"@path";req', "/api/v1/transaction"],
  ['"content-digest";req', digest],
  ['"signature";req;key="sig1"', `:${signatureOfRequest}:`],
];
const receiptNames = ["@status", "content-digest", ...receipt.slice(2).map(([name]) => name)];
const bound = (changes) => ({
  message: answer,
  covered: receipt,
  policy: { requiredComponents: receiptNames },
  ...changes,
});
const ofRequest = (change) => (message) => ({
  ...message,
  request: { ...message.request, ...change(message.request) },
});
const line =
  (name, value) =>
  ({ headers }) => ({ headers: headers.map((each) => (each[0] === name ? [name, value] : each)) });
const other = (index, value) => receipt.map((each, at) => (at === index ? [each[0], value] : each));
const on = (id, shows, covered, more = {}) => component(id, shows, covered, { message: answer, ...more });

export const theme = "Responses (RFC 9421 section 2.2.9), bound to their requests by req (section 2.4)";
export const cases = [
  on("status", "@status is the three digits of the status code.", ['"@status"', "201"]),
  on("status-503", "@status of an error is signed alike.", ['"@status"', "503"], {
    message: { ...answer, status: 503 },
  }),
  on("status-changed", "Another status is another message.", ['"@status"', "200"], {
    received: [['"@status"', "201"]],
    code: "signature-mismatch",
  }),
  on("status-two-digits", "A status code has three digits.", ['"@status"', "20"], {
    message: { ...answer, status: 20 },
    ...refused("covered-field-invalid"),
  }),
  on("response-field", "A field of a response is its own.", ['"content-type"', "application/json"]),
  on(
    "response-method",
    "A response has no @method of its own.",
    ['"@method"', "POST"],
    unasked("component-unsupported"),
  ),
  on(
    "response-path",
    "A response has no @path of its own.",
    ['"@path"', "/api/v1/transaction"],
    unasked("component-unsupported"),
  ),
  on("req-method", "req takes @method from the request.", ['"@method";req', "POST"]),
  on("req-authority", "req takes @authority from the request.", ['"@authority";req', "example.com"]),
  on("req-path", "req takes @path from the request.", ['"@path";req', "/api/v1/transaction"]),
  on("req-query", "req takes @query from the request.", ['"@query";req', "?"]),
  on("req-scheme", "req takes @scheme from the request.", ['"@scheme";req', "https"]),
  on("req-request-target", "req takes @request-target from the request.", [
    '"@request-target";req',
    "/api/v1/transaction",
  ]),
  on("req-target-uri", "req takes @target-uri from the request.", [
    '"@target-uri";req',
    "https://example.com/api/v1/transaction",
  ]),
  on("req-query-param", "req goes with name.", ['"@query-param";name="id";req', "7"], {
    message: { ...answer, request: { ...request, target: "/x?id=7" } },
  }),
  on(
    "req-query-param-order",
    "The order of parameters is the signer's.",
    ['"@query-param";req;name="id"', "7"],
    { message: { ...answer, request: { ...request, target: "/x?id=7" } } },
  ),
  on("req-field", "req takes a field from the request.", ['"content-type";req', "application/json"]),
  on("req-key", "req goes with key.", ['"priority";key="u";req', "1"]),
  on("req-sf", "req goes with sf.", ['"priority";sf;req', "u=1, i"]),
  on("req-bs", "req goes with bs.", ['"priority";bs;req', ":dT0xLCBp:"]),
  on("req-tr", "req goes with tr.", ['"x-sum";tr;req', "abc"], {
    message: { ...answer, request: { ...request, trailers: [["X-Sum", "abc"]] } },
  }),
  on("req-status", "A request has no @status.", ['"@status";req', "201"], unasked("component-unsupported")),
  on("req-unknown", "req cannot be computed where the request is not known.", ['"@method";req', "POST"], {
    message: { status: 201, headers: answer.headers },
    ...unasked("component-parameter-unsupported"),
  }),
  on(
    "req-field-absent",
    "A field that is in the response alone is not in the request.",
    ['"x-note";req', "a"],
    {
      message: { ...answer, headers: [...answer.headers, ["X-Note", "a"]] },
      ...refused("covered-field-missing"),
    },
  ),
  on("req-dropped", "A component without req is another one than with it.", ['"content-digest"', digest], {
    policy: { requiredComponents: ['"content-digest";req'] },
    code: "component-required",
  }),
  on("req-added", "A component with req is another one than without it.", ['"content-digest";req', digest], {
    policy: { requiredComponents: ["content-digest"] },
    code: "component-required",
  }),
  on("response-tr", "A response may have trailers.", ['"x-sum";tr', "abc"], {
    message: { ...answer, trailers: [["X-Sum", "abc"]] },
  }),
  vector("receipt", "An answer that covers its request is a receipt of it.", bound({})),
  vector(
    "receipt-other-method",
    "A receipt is not one of a request with another method.",
    bound({
      arrives: ofRequest(() => ({ method: "PUT" })),
      received: other(2, "PUT"),
      code: "signature-mismatch",
    }),
  ),
  vector(
    "receipt-other-path",
    "A receipt is not one of a request for another path.",
    bound({
      arrives: ofRequest(() => ({ target: "/api/v1/refund" })),
      received: other(3, "/api/v1/refund"),
      code: "signature-mismatch",
    }),
  ),
  vector(
    "receipt-other-body",
    "A receipt is not one of a request with another body.",
    bound({
      arrives: ofRequest(line("Content-Digest", "sha-256=:AAAA:")),
      received: other(4, "sha-256=:AAAA:"),
      code: "signature-mismatch",
    }),
  ),
  vector(
    "receipt-other-signature",
    "A receipt is not one of a request with another signature.",
    bound({
      arrives: ofRequest(line("Signature", "sig1=:AAAA:")),
      received: other(5, ":AAAA:"),
      code: "signature-mismatch",
    }),
  ),
  vector(
    "receipt-no-request",
    "A receipt shows nothing without its request.",
    bound({
      arrives: ({ request: _left, ...message }) => message,
      ...refused("component-parameter-unsupported"),
    }),
  ),
  vector(
    "receipt-other-status",
    "The status of a receipt cannot be changed.",
    bound({
      arrives: (message) => ({ ...message, status: 200 }),
      received: other(0, "200"),
      code: "signature-mismatch",
    }),
  ),
  vector(
    "receipt-unbound",
    "An answer that does not cover its request is no receipt.",
    bound({
      covered: receipt.slice(0, 2),
      code: "component-required",
    }),
  ),
  vector("request-as-response", "The signature of a request is not that of its answer.", {
    message: answer,
    covered: four,
    policy: { requiredComponents: fourNames },
    ...refused("component-unsupported"),
  }),
];
