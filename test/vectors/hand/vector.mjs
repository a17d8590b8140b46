// Makes a vector by string concatenation (RFC 9421 section 2.5): no code of the packages, and verdicts that are written by hand.
import { algorithmFor, verifierKey } from "./keys.mjs";

/** The clock of the vectors, in Unix seconds. */
export const now = 1_800_000_000;
/** Of the body {"hello": "world"}. */
export const digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";

/** The request that is signed unless a vector changes it. */
export const payment = {
  method: "POST",
  target: "/api/v1/transaction",
  headers: [
    ["Host", "example.com"],
    ["Content-Type", "application/json"],
    ["Content-Digest", digest],
  ],
};
/** What covers it: identifiers as they stand in the base, with their values. */
export const four = [
  ['"@method"', "POST"],
  ['"@path"', "/api/v1/transaction"],
  ['"content-type"', "application/json"],
  ['"content-digest"', digest],
];
/** The same as a policy requires it. */
export const fourNames = ["@method", "@path", "content-type", "content-digest"];

/**
 * One vector. `draft` says what is signed and what arrives:
 * message, covered (also a function of the signatures before), parameters, their order, label, signWith, by (scheme), signatures
 * (several, each with these);
 * input (the member of Signature-Input as sent), forge (bytes of the base to the signature), alter (its bytes to others),
 * fields (label, input and signature to header lines), arrives (the message to what comes), received (covered as it comes, or false
 * where the base cannot be computed), keys, policy, policies, need, time, code (of the refusal; none is valid).
 */
export function vector(id, shows, draft = {}) {
  return { id, shows, draft };
}

/** The vector as it is written: signed, with the base that the verifier has to compute. */
export function finish({ id, shows, draft }, signatures) {
  const { code, time = now, arrives = (message) => message, need } = draft;
  const message = { ...(draft.message?.status === undefined ? payment : {}), ...draft.message };
  const parts = [];
  for (const part of draft.signatures ?? [{}]) parts.push(signPart({ ...draft, ...part }, signatures, parts));
  const fields = draft.fields?.(...parts) ?? [
    ["Signature-Input", parts.map(({ label, input }) => `${label}=${input}`).join(", ")],
    ["Signature", parts.map(({ label, base64 }) => `${label}=:${base64}:`).join(", ")],
  ];
  const hasBase = draft.received !== false && !(draft.arrives !== undefined && draft.received === undefined);
  const policies = draft.policies ?? [draft.policy ?? {}];
  const algorithm = algorithmFor(draft.signWith ?? "ed25519");
  return {
    id,
    shows,
    time,
    keys: draft.keys ?? [verifierKey(draft.signWith ?? "ed25519")],
    policies: policies.map((policy) => ({
      requiredComponents: fourNames,
      requiredParameters: ["created", "expires", "keyid", "alg", "nonce"],
      algorithms: [algorithm],
      windowSeconds: 60,
      clockSkewSeconds: 30,
      ...policy,
    })),
    ...(need === undefined ? {} : { need }),
    message: arrives({ ...message, headers: [...message.headers, ...fields] }),
    expected: {
      verdict: code === undefined ? "valid" : "refused",
      ...(code === undefined ? { labels: draft.labels ?? parts.map(({ label }) => label) } : { code }),
      ...(hasBase ? { bases: Object.fromEntries(parts.map(({ label, base }) => [label, base])) } : {}),
    },
  };
}

function signPart(draft, signatures, earlier) {
  const { label = "sig1", signWith = "ed25519", by = algorithmFor(signWith) } = draft;
  const parameters = {
    created: String(now),
    expires: String(now + 60),
    keyid: '"test-key"',
    alg: `"${algorithmFor(signWith)}"`,
    nonce: '"n-0001"',
    ...draft.parameters,
  };
  const covered = typeof draft.covered === "function" ? draft.covered(earlier) : (draft.covered ?? four);
  const written = (draft.order ?? Object.keys(parameters))
    .map((name) => [name, parameters[name]])
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `;${name}${value === true ? "" : `=${value}`}`)
    .join("");
  const signed = baseOf(covered, written);
  const made = draft.forge?.(signed.base) ?? signatures.make(signed.base, signWith, by);
  const bytes = Buffer.from(draft.alter?.(made) ?? made);
  const { base } = Array.isArray(draft.received) ? baseOf(draft.received, written) : signed;
  return {
    label,
    input: draft.input?.(signed.input) ?? signed.input,
    base,
    base64: bytes.toString("base64"),
  };
}

function baseOf(covered, parameters) {
  const input = `(${covered.map(([identifier]) => identifier).join(" ")})${parameters}`;
  const lines = covered.map(([identifier, value]) => `${identifier}: ${value}\n`);
  return { input, base: `${lines.join("")}"@signature-params": ${input}` };
}

/** A vector of one covered component, which the policy requires too. */
export function component(id, shows, [identifier, value], draft = {}) {
  const plain = /^"([^"]+)"$/.exec(identifier)?.[1];
  const policy = { requiredComponents: [plain ?? identifier], ...draft.policy };
  return vector(id, shows, { ...draft, covered: [[identifier, value]], policy });
}

/** The change of an arriving message in which one header line has another value. */
export function withLine(name, value) {
  return (message) => ({
    ...message,
    headers: message.headers.map((line) => (line[0].toLowerCase() === name ? [line[0], value] : line)),
  });
}
