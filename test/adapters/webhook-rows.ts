import { signPayloadHeaders } from "@countersign/webhook-hmac";
import type { WireRequest } from "../support/servers/http-client.ts";
import { problem, unavailable, type ExactAnswer } from "./answers.ts";
import { steps } from "./store-steps.ts";
import {
  basic,
  deliver,
  envelope,
  event,
  hmac,
  hookPath,
  rightUser,
  secret,
  webhookScene,
  type WebhookState,
} from "./webhook-scene.ts";
import type { Row } from "./row.ts";

const done: ExactAnswer = { status: 200, headers: {}, body: "" };
const challenge = { "www-authenticate": 'Basic realm="webhook", charset="UTF-8"' };
const credentialsRefused = problem(401, {}, challenge);
const unauthorized = problem(401);
const body = envelope();
const signature = hmac(body);

type Refused = readonly [title: string, code: string, request: () => WireRequest];

const authorizations: readonly Refused[] = (
  [
    ["no Authorization", "credentials-missing", []],
    ["an empty Authorization", "credentials-malformed", ""],
    ["another scheme", "credentials-malformed", `Bearer ${basic(rightUser).slice(6)}`],
    ["no base64", "credentials-malformed", "Basic ***"],
    ["a wrong user", "credentials-wrong", basic("Service:test-password")],
    ["a wrong password", "credentials-wrong", basic("service:test-passwort")],
    ["an empty password", "credentials-malformed", basic("service:")],
    ["two Authorization lines", "credentials-malformed", [basic(rightUser), basic(rightUser)]],
    ["a wrong and a right Authorization line", "credentials-malformed", [basic("a:b"), basic(rightUser)]],
  ] satisfies readonly (readonly [string, string, string | readonly string[]])[]
).map(([title, code, lines]) => [title, code, () => deliver(body, { Authorization: lines })]);

const signatures: readonly Refused[] = (
  [
    ["no signature", "signature-missing", []],
    ["an empty signature", "signature-malformed", ""],
    ["two signature lines", "signature-malformed", [signature, signature]],
    ["a wrong and a right signature line", "signature-malformed", [hmac("other"), signature]],
    ["signatures joined by a comma", "signature-malformed", `${signature}, ${signature}`],
    ["a signature with more behind it", "signature-malformed", `${signature}x`],
    ["a signature of another body", "signature-wrong", hmac(`${body} `)],
    ["a signature of zeros", "signature-wrong", Buffer.alloc(32).toString("base64")],
  ] satisfies readonly (readonly [string, string, string | readonly string[]])[]
).map(([title, code, lines]) => [
  title,
  `payload-${code}`,
  () => deliver(body, { "X-Payload-Signature": lines }),
]);

const types: readonly Refused[] = (
  [
    ["no Content-Type", []],
    ["another Content-Type", "text/plain"],
    ["a charset that is not UTF-8", "application/json; charset=utf-16"],
    ["two different Content-Type lines", ["application/json", "text/plain"]],
    ["a Content-Type with a comma", "application/json, text/plain"],
  ] satisfies readonly (readonly [string, string | readonly string[]])[]
).map(([title, lines]) => [title, "media-type-unsupported", () => deliver(body, { "Content-Type": lines })]);

const codings: readonly Refused[] = ["gzip", "br", "x-unknown", "gzip, identity"].map((coding) => [
  `the content coding ${coding} of a webhook`,
  "content-encoding-unsupported",
  () => deliver(body, { "Content-Encoding": coding }),
]);

const large = envelope([{ ...event, padding: "x".repeat(5_000) }]);
const tooLarge: readonly Refused[] = [
  ["a webhook over the limit", "body-too-large", () => deliver(large)],
  [
    "a webhook over the limit, in chunks",
    "body-too-large",
    () => deliver(large, { "Transfer-Encoding": "chunked" }),
  ],
];

type Malformed = readonly [title: string, text: string, code?: string];

const malformed: readonly Refused[] = (
  [
    ["an empty webhook", "", "json-empty"],
    ["a webhook that is no JSON", "a=1", "json-invalid"],
    ["half of a webhook", body.slice(0, -5), "json-invalid"],
    ["a webhook with a member twice", body.replace("{", '{"webhook_id":"other",'), "json-duplicate-key"],
    ["a webhook that reaches a prototype", body.replace("{", '{"__proto__":{},'), "json-forbidden-key"],
    ["a webhook without end", "[".repeat(1_000) + "]".repeat(1_000), "json-too-deep"],
    ...[[], null, 1, "text"].map((value): Malformed => [
      `a webhook that is ${JSON.stringify(value)}`,
      JSON.stringify(value),
    ]),
    ...[undefined, "", 1, null].map((value): Malformed => [
      `a webhook_id of ${JSON.stringify(value)}`,
      envelope([event], { webhook_id: value }),
    ]),
    ...[undefined, "", 1, "2024-01-02", "2024-01-02T03:04:05+01:00", "2024-13-02T03:04:05Z"].map(
      (value): Malformed => [
        `a timestamp of ${JSON.stringify(value)}`,
        envelope([event], { timestamp: value }),
      ],
    ),
    ...[undefined, null, {}, "text"].map((value): Malformed => [
      `events of ${JSON.stringify(value)}`,
      envelope([event], { events: value }),
    ]),
  ] as readonly Malformed[]
).map(([title, text, code = "envelope-invalid"]) => [title, code, () => deliver(text)]);

const hosts: readonly Refused[] = [
  [
    "a webhook with two Host lines",
    "host-repeated",
    () => deliver(body, { Host: ["a.example", "b.example"] }),
  ],
];

const answerOf = (code: string): ExactAnswer => {
  if (code.startsWith("credentials-")) return credentialsRefused;
  if (code.startsWith("payload-signature-")) return unauthorized;
  if (code === "media-type-unsupported") return problem(415, { code });
  if (code === "content-encoding-unsupported")
    return problem(415, { code }, { "accept-encoding": "identity" });
  return problem(code === "body-too-large" ? 413 : 400, { code });
};

/** Refused, each with its status where the endpoint shows itself, and as an unknown route where it hides. */
type Told = WebhookState & {
  readonly title: string;
  readonly code: string;
  readonly request?: () => WireRequest;
  readonly answer: ExactAnswer;
};

const refusals: readonly Told[] = [
  ...authorizations,
  ...signatures,
  ...types,
  ...codings,
  ...tooLarge,
  ...malformed,
  ...hosts,
].map(([title, code, request]) => ({ title, code, request, answer: answerOf(code) }));

const methods: readonly Told[] = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => {
  const answer = problem(405, { code: "method-not-allowed" }, { allow: "POST" });
  return {
    title: `a webhook by ${method}`,
    code: "method-not-allowed",
    request: () => deliver(["GET", "HEAD"].includes(method) ? "" : body, {}, method),
    answer: method === "HEAD" ? { ...answer, body: "" } : answer,
  };
});

const down = (): never => {
  throw new Error("down");
};
const claimed = (store: Parameters<NonNullable<WebhookState["before"]>>[0], key: string): unknown =>
  store.claim(key, { token: "another", fingerprint: "another", leaseMs: 30_000, recovery: "rerun" });

const situations: readonly Told[] = [
  {
    title: "a webhook over plain http",
    options: { https: {} },
    code: "https-required",
    answer: problem(403, { code: "https-required" }),
  },
  {
    title: "a webhook over plain http that says it came by https",
    options: { https: {} },
    request: () => deliver(body, { "X-Forwarded-Proto": "https", Forwarded: "proto=https" }),
    code: "https-required",
    answer: problem(403, { code: "https-required" }),
  },
  {
    title: "a webhook from an address that is not listed",
    options: { addresses: { allow: ["192.0.2.1"] } },
    code: "ip-not-allowed",
    answer: unauthorized,
  },
  {
    title: "a webhook while there is no good list of addresses",
    options: { addresses: { allow: { isAllowed: down } } },
    code: "allowlist-unavailable",
    answer: unavailable(30),
  },
  {
    title: "a webhook by a scheme with a time that is over",
    options: { hmac: { scheme: "slack", clock: () => 1_301_000 } },
    request: () =>
      deliver(
        body,
        signPayloadHeaders(Buffer.from(body), secret, { scheme: "slack", timestampSeconds: 1000 }),
      ),
    code: "payload-timestamp-expired",
    answer: unauthorized,
  },
  {
    title: "secrets that throw",
    options: { hmac: { secrets: down } },
    code: "secrets-unavailable",
    answer: unavailable(),
  },
  { title: "an event that fails", work: down, code: "events-failed", answer: unavailable() },
  { title: "an event that runs elsewhere", before: claimed, code: "events-busy", answer: unavailable() },
  {
    title: "a store of events that throws",
    storeOf: (inner) => ({ ...steps(inner), claim: down }),
    code: "events-failed",
    answer: unavailable(),
  },
  {
    title: "a record of an event that is not written",
    storeOf: (inner) => ({ ...steps(inner), complete: down }),
    code: "events-failed",
    answer: unavailable(),
  },
  {
    title: "too many events",
    options: { maxEvents: 1 },
    request: () => deliver(envelope([event, { ...event, event_id: "ev_2" }])),
    code: "events-too-many",
    answer: problem(413, { code: "events-too-many" }),
  },
];

const keepingMalformed: WebhookState = { handling: { maxAttempts: 1, onDeadLetter: () => undefined } };

const accepted: readonly (readonly [
  title: string,
  request?: (() => WireRequest) | undefined,
  state?: WebhookState,
])[] = [
  ["a genuine webhook"],
  ["a webhook without events", () => deliver(envelope([]))],
  ["a webhook with an event twice", () => deliver(envelope([event, event]))],
  ["a webhook with an unknown type", () => deliver(envelope([{ ...event, type: "new.type" }]))],
  ["a webhook with further members", () => deliver(envelope([event], { further: [1] }))],
  ["a webhook in chunks", () => deliver(body, { "Transfer-Encoding": "chunked" })],
  ["a webhook with a charset", () => deliver(body, { "Content-Type": 'application/json;charset="UTF-8"' })],
  ["a webhook with a query", () => ({ ...deliver(), path: `${hookPath}?attempt=2` })],
  [
    "a webhook with the scheme in capitals",
    () => deliver(body, { Authorization: basic(rightUser).replace("Basic", "BASIC") }),
  ],
  ["a webhook with line breaks", () => deliver(JSON.stringify(JSON.parse(body), null, 2))],
  ["a webhook with letters beyond ASCII", () => deliver(envelope([event], { note: "Überweisung 💶" }))],
  [
    "a webhook with half of a surrogate pair in one of its events",
    () => deliver(envelope([{ ...event, note: "?" }]).replace('"?"', String.raw`"\ud83d"`)),
    keepingMalformed,
  ],
  [
    "a webhook with an event that has no id",
    () => deliver(envelope([{ ...event, event_id: undefined }, event])),
    keepingMalformed,
  ],
  [
    "a webhook with the second of two secrets",
    undefined,
    { options: { hmac: { secrets: async () => ["another-secret", "test-secret"] } } },
  ],
  [
    "a webhook by another sender's scheme",
    () => deliver(body, { "X-Payload-Signature": [], "X-Hub-Signature-256": `sha256=${hmac(body, "hex")}` }),
    { options: { hmac: { scheme: "github" } } },
  ],
  [
    "a webhook by a scheme with two signatures behind one prefix",
    () => deliver(body, { "X-Payload-Signature": `v0=${hmac(`${body} `, "hex")},${hmac(body, "hex")}` }),
    {
      options: {
        hmac: {
          scheme: {
            header: "X-Payload-Signature",
            signatureEncodings: ["hex"],
            prefix: "v0=",
            separator: ",",
          },
        },
      },
    },
  ],
  [
    "a webhook by a scheme with a time",
    () =>
      deliver(
        body,
        signPayloadHeaders(Buffer.from(body), secret, { scheme: "slack", timestampSeconds: 1000 }),
      ),
    { options: { hmac: { scheme: "slack", clock: () => 1_300_000 } } },
  ],
  [
    "a webhook from an address of a list that changes",
    undefined,
    { options: { addresses: { allow: { isAllowed: (address) => address === "127.0.0.1" } } } },
  ],
  ["a webhook from a listed address", undefined, { options: { addresses: { allow: ["127.0.0.0/8"] } } }],
  [
    "a webhook whose event takes its time",
    undefined,
    { work: () => new Promise((resolve) => setTimeout(resolve, 5)) },
  ],
];

const told = ({ title, code, answer, request = () => deliver(), ...state }: Told): Row[] => [
  { title, code, answer, scene: webhookScene(false, state), request },
  {
    title: `${title}, hidden`,
    code,
    answer: "unknown-route",
    scene: webhookScene(true, state),
    request,
  },
];

export const webhookRows: readonly Row[] = [
  ...accepted.map(([title, request = () => deliver(), state]): Row => ({
    title,
    scene: webhookScene(true, state),
    request,
    answer: done,
  })),
  ...[...refusals, ...methods, ...situations].flatMap(told),
];
