import { four, now, payment, vector } from "../hand/vector.mjs";

const parameter = (id, shows, parameters, code) =>
  vector(id, shows, { parameters, ...(code === undefined ? {} : { code }) });

export const theme =
  "Policies: what is required and forbidden, and what parameters are like (RFC 9421 section 3.2.1)";
export const cases = [
  vector("policy", "A payment that covers what is required, and nothing else.", {}),
  vector("more-covered", "More than what is required may be covered.", {
    covered: [...four, ['"host"', "example.com"]],
  }),
  vector("other-order", "Components may stand in any order.", { covered: four.toReversed() }),
  ...four.map((left, index) =>
    vector(
      `component-missing-${index + 1}`,
      `A required component that is not covered: ${left[0].slice(1, -1)}.`,
      {
        covered: four.filter((each) => each !== left),
        code: "component-required",
      },
    ),
  ),
  vector("components-empty", "A signature that covers nothing is refused, whatever the policy.", {
    covered: [],
    policy: { requiredComponents: [] },
    received: false,
    code: "components-empty",
  }),
  vector("component-forbidden", "A forbidden component must not be covered.", {
    policy: { requiredComponents: ["@method"], forbiddenComponents: ["content-type"] },
    code: "component-forbidden",
  }),
  vector("component-forbidden-parameters", "A forbidden name stands for it with whatever parameters.", {
    covered: [...four, ['"host";bs', ":ZXhhbXBsZS5jb20=:"]],
    policy: { forbiddenComponents: ["host"] },
    code: "component-forbidden",
  }),
  vector("component-forbidden-full", "A forbidden identifier with parameters forbids that one alone.", {
    covered: [...four, ['"host"', "example.com"]],
    policy: { forbiddenComponents: ['"host";bs'] },
  }),
  vector("component-required-parameters", "A required identifier is compared with its parameters.", {
    policy: { requiredComponents: ['"content-digest";sf'] },
    code: "component-required",
  }),
  vector("component-required-order", "The order of an identifier's parameters does not count.", {
    message: { headers: [...payment.headers, ["Priority", "u=1"]] },
    covered: [...four, ['"priority";sf;key="u"', "1"]],
    policy: { requiredComponents: ['"priority";key="u";sf'] },
  }),
  ...["created", "expires", "alg", "nonce"].map((name) =>
    parameter(
      `parameter-missing-${name}`,
      `A required parameter that is not there: ${name}.`,
      { [name]: undefined },
      `${name}-invalid`,
    ),
  ),
  vector("parameter-missing-keyid", "keyid is required whatever the policy: no key is guessed.", {
    parameters: { keyid: undefined },
    policy: { requiredParameters: ["created"] },
    code: "keyid-invalid",
  }),
  vector("parameters-none", "A policy may require no parameter but keyid.", {
    parameters: { created: undefined, expires: undefined, alg: undefined, nonce: undefined },
    policy: { requiredParameters: ["keyid"] },
  }),
  vector("parameter-forbidden", "A forbidden parameter must not be there.", {
    parameters: { tag: '"a"' },
    policy: { forbiddenParameters: ["tag"] },
    code: "parameter-forbidden",
  }),
  vector("parameter-forbidden-unknown", "A parameter that RFC 9421 does not have can be forbidden too.", {
    parameters: { x: "1" },
    policy: { forbiddenParameters: ["x"] },
    code: "parameter-forbidden",
  }),
  parameter("parameter-unknown", "An unknown parameter is signed like any other.", { x: "1" }),
  parameter("parameter-unknown-flag", "An unknown parameter may be a flag.", { flag: true }),
  parameter("parameter-unknown-decimal", "An unknown parameter may be of any type.", {
    a: "-1.5",
    b: "tok/en",
    c: ":AAEC:",
  }),
  vector("parameter-order", "Parameters stand in the signer's order.", {
    order: ["nonce", "alg", "keyid", "expires", "created"],
  }),
  parameter("keyid-empty", "keyid is not empty.", { keyid: '""' }, "keyid-invalid"),
  parameter("keyid-token", "keyid is a string.", { keyid: "test-key" }, "keyid-invalid"),
  parameter("keyid-bytes", "keyid is no byte sequence.", { keyid: ":dGVzdC1rZXk=:" }, "keyid-invalid"),
  parameter("nonce-empty", "nonce is not empty.", { nonce: '""' }, "nonce-invalid"),
  parameter("nonce-integer", "nonce is a string.", { nonce: "1" }, "nonce-invalid"),
  parameter("created-string", "created is an integer.", { created: `"${now}"` }, "created-invalid"),
  parameter("created-decimal", "created has no fraction.", { created: `${now}.0` }, "created-invalid"),
  parameter("created-negative", "created is not negative.", { created: "-1" }, "created-invalid"),
  parameter("created-flag", "created has a value.", { created: true }, "created-invalid"),
  parameter("expires-string", "expires is an integer.", { expires: `"${now}"` }, "expires-invalid"),
  parameter(
    "expires-milliseconds",
    "Milliseconds are no seconds.",
    { created: `${now}000`, expires: `${now}060` },
    "created-in-future",
  ),
  vector("parameter-order-tag", "A tag may stand among the parameters.", {
    parameters: { tag: '"payout"' },
    order: ["keyid", "tag", "created", "alg", "nonce", "expires"],
  }),
  parameter("alg-flag", "alg has a value.", { alg: true }, "alg-invalid"),
  parameter("nonce-token", "nonce is no token.", { nonce: "abc" }, "nonce-invalid"),
  parameter("created-token", "created is no token.", { created: "soon" }, "created-invalid"),
  parameter("created-bytes", "created is no byte sequence.", { created: ":AAAA:" }, "created-invalid"),
  parameter("expires-token", "expires is no token.", { expires: "soon" }, "expires-invalid"),
  parameter("expires-flag", "expires has a value.", { expires: true }, "expires-invalid"),
  parameter("expires-decimal", "expires has no fraction.", { expires: `${now + 60}.0` }, "expires-invalid"),
  parameter("expires-negative", "expires is not negative.", { expires: "-1" }, "expires-invalid"),
  parameter("expires-bytes", "expires is no byte sequence.", { expires: ":AAAA:" }, "expires-invalid"),
  parameter("tag-empty", "A tag may be empty.", { tag: '""' }),
  parameter("tag-integer", "A tag is no integer.", { tag: "1" }, "tag-invalid"),
  parameter("tag-decimal", "A tag is no decimal.", { tag: "1.0" }, "tag-invalid"),
  parameter("tag-boolean", "A tag is no boolean.", { tag: "?0" }, "tag-invalid"),
  parameter("tag-flag", "A tag has a value.", { tag: true }, "tag-invalid"),
];
