import { verifierKey } from "../hand/keys.mjs";
import { four, vector } from "../hand/vector.mjs";

const tagged = (id, shows, { tag, policy, code }) =>
  vector(id, shows, {
    parameters: { tag },
    policy: { tag: policy },
    ...(code === undefined ? {} : { code }),
  });

const sig = (label, parameters = {}, more = {}) => ({ label, parameters, ...more });
const second = { keyid: '"other-key"', nonce: '"n-0002"' };
const both = [verifierKey("ed25519"), verifierKey("p256", { keyid: "other-key" })];
const byOther = { signWith: "p256" };
const algorithms = ["ed25519", "ecdsa-p256-sha256"];
const several = (id, shows, { signatures, policies, ...more }) =>
  vector(id, shows, {
    keys: both,
    signatures,
    policies: policies.map((policy) => ({ algorithms, ...policy })),
    ...more,
  });
const ofTag = (value) => ({ tag: { require: [value] } });
const one = sig("sig1", { tag: '"a"' });
const two = sig("sig2", { ...second, tag: '"b"' }, byOther);
const proxy = sig(
  "proxy",
  { ...second, tag: '"b"' },
  {
    ...byOther,
    covered: ([first]) => [['"signature";key="sig1"', `:${first.base64}:`], ...four],
  },
);
const broken = { alter: (bytes) => bytes.map((byte, index) => (index === 5 ? byte ^ 1 : byte)) };

export const theme = "Tags, labels, and several signatures on a message (RFC 9421 sections 3.2.1 and 4.3)";
export const cases = [
  tagged("tag", "A tag that is required.", { tag: '"pay"', policy: { require: ["pay"] } }),
  tagged("tag-one-of", "One of several tags that are required.", {
    tag: '"pay"',
    policy: { require: ["x", "pay"] },
  }),
  tagged("tag-other", "Another tag is another application's signature.", {
    tag: '"web-bot-auth"',
    policy: { require: ["pay"] },
    code: "tag-mismatch",
  }),
  tagged("tag-absent", "Without a tag, the required one is not there.", {
    tag: undefined,
    policy: { require: ["pay"] },
    code: "tag-mismatch",
  }),
  tagged("tag-case", "Tags are case-sensitive.", {
    tag: '"Pay"',
    policy: { require: ["pay"] },
    code: "tag-mismatch",
  }),
  tagged("tag-part", "A part of a tag is another tag.", {
    tag: '"pa"',
    policy: { require: ["pay"] },
    code: "tag-mismatch",
  }),
  tagged("tag-token", "A tag is a string.", {
    tag: "pay",
    policy: { require: ["pay"] },
    code: "tag-invalid",
  }),
  tagged("tag-bytes", "A tag is a string also where none is required.", {
    tag: ":cGF5:",
    policy: undefined,
    code: "tag-invalid",
  }),
  tagged("tag-any", "Where the policy says nothing of tags, any will do.", {
    tag: '"anything at all"',
    policy: undefined,
  }),
  tagged("tag-excluded", "An excluded tag is refused.", {
    tag: '"web-bot-auth"',
    policy: { exclude: ["web-bot-auth"] },
    code: "tag-mismatch",
  }),
  tagged("tag-not-excluded", "Another tag than the excluded one is taken.", {
    tag: '"pay"',
    policy: { exclude: ["web-bot-auth"] },
  }),
  tagged("tag-none-excluded", "A signature without a tag has no excluded one.", {
    tag: undefined,
    policy: { exclude: ["web-bot-auth"] },
  }),
  vector("label", "A label that the policy names.", { label: "proxy", policy: { label: "proxy" } }),
  vector("label-any", "Labels carry no meaning.", { label: "*a_b-c.d9" }),
  vector("label-other", "Another label than the policy names is not looked at.", {
    label: "sig1",
    policy: { label: "sig2" },
    code: "signature-missing",
  }),
  several("two-by-tag", "The one signature of several that fits the policy.", {
    signatures: [one, two],
    policies: [ofTag("b")],
    labels: ["sig2"],
  }),
  several("two-by-label", "The one signature that has the label.", {
    signatures: [one, two],
    policies: [{ label: "sig1" }],
    labels: ["sig1"],
  }),
  several("two-by-coverage", "The one signature that covers enough.", {
    signatures: [sig("sig1", {}, { covered: four.slice(0, 2) }), sig("sig2", second, byOther)],
    policies: [{}],
    labels: ["sig2"],
  }),
  several("two-that-fit", "Two signatures that fit one policy are ambiguous.", {
    signatures: [one, two],
    policies: [{}],
    code: "signature-ambiguous",
  }),
  several("two-one-wrong", "The signature of another policy may be wrong: nobody looks at it.", {
    signatures: [{ ...one, ...broken }, two],
    policies: [ofTag("b")],
    labels: ["sig2"],
  }),
  several("two-that-fit-one-wrong", "Two that fit are ambiguous, also when one of them is wrong.", {
    signatures: [{ ...one, ...broken }, two],
    policies: [{}],
    code: "signature-ambiguous",
  }),
  several("all-of-two", "All of two policies.", {
    signatures: [one, two],
    policies: [ofTag("a"), ofTag("b")],
    need: "all",
    labels: ["sig1", "sig2"],
  }),
  several("all-of-two-one-wrong", "All of two, and one signature is wrong.", {
    signatures: [one, { ...two, ...broken }],
    policies: [ofTag("a"), ofTag("b")],
    need: "all",
    code: "signature-mismatch",
  }),
  several("all-of-two-one-absent", "All of two, and one signature is not there.", {
    signatures: [one],
    policies: [ofTag("a"), ofTag("b")],
    need: "all",
    code: "tag-mismatch",
  }),
  several("all-by-one", "One signature is not enough for two policies.", {
    signatures: [one],
    policies: [ofTag("a"), { label: "sig1" }],
    need: "all",
    code: "signature-ambiguous",
  }),
  several("any-of-two", "Any of two policies.", {
    signatures: [one],
    policies: [ofTag("b"), ofTag("a")],
    need: "any",
    labels: ["sig1"],
  }),
  several("any-of-two-one-wrong", "Any of two, and one signature is wrong.", {
    signatures: [{ ...one, ...broken }, two],
    policies: [ofTag("a"), ofTag("b")],
    need: "any",
    labels: ["sig2"],
  }),
  several("any-of-two-none", "Any of two, and none is there.", {
    signatures: [one],
    policies: [ofTag("c"), ofTag("d")],
    need: "any",
    code: "tag-mismatch",
  }),
  several("signature-of-signature", "A second signature may cover the first one.", {
    signatures: [one, proxy],
    policies: [ofTag("a"), { ...ofTag("b"), requiredComponents: ['"signature";key="sig1"'] }],
    need: "all",
    labels: ["sig1", "proxy"],
  }),
  several(
    "signature-of-other-signature",
    "A second signature that covers the first one does not stand without it.",
    {
      signatures: [one, proxy],
      policies: [{ ...ofTag("b"), requiredComponents: ['"signature";key="sig1"'] }],
      fields: (_first, { input, base64 }) => [
        ["Signature-Input", `proxy=${input}`],
        ["Signature", `proxy=:${base64}:`],
      ],
      received: false,
      code: "covered-field-missing",
    },
  ),
  several("labels-swapped", "A signature does not verify under the label of another one.", {
    signatures: [one, two],
    policies: [{ label: "sig1" }],
    fields: (first, other) => [
      ["Signature-Input", `sig1=${other.input}, sig2=${first.input}`],
      ["Signature", `sig1=:${first.base64}:, sig2=:${other.base64}:`],
    ],
    received: false,
    code: "signature-mismatch",
  }),
];
