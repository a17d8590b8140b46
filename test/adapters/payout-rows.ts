import { memoryNonceStore } from "@countersign/http-signature-verify";
import { sha256Field } from "../support/signers/independent-signer.ts";
import { hostileSignatures } from "../support/signers/hostile-signatures.ts";
import type { WireRequest } from "../support/servers/http-client.ts";
import { payoutUnauthorized, problem, unavailable } from "./answers.ts";
import { acknowledged, payoutScene, payoutText, signBody, signPayout } from "./payout-scene.ts";
import { fetchSeesAnother, inAnotherCase, routersDiffer, targets } from "./payout-exceptions.ts";
import type { Row } from "./row.ts";

const scene = payoutScene();
const refused = { scene, answer: payoutUnauthorized, ran: 0, recorded: "free" } as const;

const tooLarge = JSON.stringify({ ...JSON.parse(payoutText), padding: "x".repeat(4_096) });

const hostile = hostileSignatures(signPayout).map(([title, code, request]): Row => {
  const except = { ...routersDiffer[title], ...fetchSeesAnother[title] };
  return { ...refused, title, code, request, except };
});

const genuine: readonly Row[] = (
  [
    ["a genuine payout", () => signPayout()],
    ["a charset of UTF-8", () => signPayout({ contentType: "application/json; charset=utf-8" })],
    ["a byte order mark", () => signBody(`\ufeff${payoutText}`)],
    ["a further covered field", () => withNote("note", ["note"])],
    ["a covered field in two lines", () => withNote("one, two", ["one", "two"])],
    ["a further, foreign label", () => withLine("Signature", "other=:AAAA:")],
    ["chunks", () => withLine("Transfer-Encoding", "chunked")],
    ["the identity coding", () => withLine("Content-Encoding", "identity")],
    ["header names in capitals", () => withCapitals(signPayout())],
    ["an unknown digest beside the right one", () => signPayout({ contentDigest: twoDigests("md5=:AAAA:") })],
    ["created 25 seconds ahead", () => signPayout({ created: now() + 25 })],
    ["created 50 seconds ago", () => signPayout({ created: now() - 50 })],
  ] satisfies readonly (readonly [string, () => WireRequest])[]
).map(([title, request]): Row => ({
  scene,
  title,
  request,
  answer: acknowledged,
  recorded: "done",
}));

const partners: readonly Row[] = [
  {
    title: "a payout by the policy of its partner",
    scene: payoutScene({ options: { signature: { policy: () => ({ windowSeconds: 60 }) } } }),
    request: () => signPayout(),
    answer: acknowledged,
    recorded: "done",
  },
  {
    ...refused,
    title: "a payout of a partner without a policy",
    scene: payoutScene({ options: { signature: { policy: () => undefined } } }),
    request: () => signPayout(),
    code: "policy-unknown",
  },
];

const bodies: readonly Row[] = [
  {
    title: "a body over the limit",
    request: () => signBody(tooLarge),
    answer: problem(413, { code: "body-too-large" }),
  },
  {
    title: "a body over the limit, in chunks",
    request: () => withLine("Transfer-Encoding", "chunked", signBody(tooLarge)),
    answer: problem(413, { code: "body-too-large" }),
  },
  {
    title: "a payout with two Host lines",
    request: () => withLine("Host", "a.example", withLine("Host", "b.example")),
    answer: problem(400, { code: "host-repeated" }),
  },
  ...["gzip", "gzip, identity", "x-unknown"].map((coding) => ({
    title: `the content coding ${coding}`,
    request: () => withLine("Content-Encoding", coding),
    answer: problem(415, { code: "content-encoding-unsupported" }, { "accept-encoding": "identity" }),
  })),
  {
    title: "the content coding identity in two lines",
    request: () => withLine("Content-Encoding", "identity", withLine("Content-Encoding", "identity")),
    answer: problem(415, { code: "content-encoding-unsupported" }, { "accept-encoding": "identity" }),
  },
  {
    title: "the transfer codings gzip and chunked",
    request: () => withLine("Transfer-Encoding", "gzip, chunked"),
    answer: problem(501),
    code: "transfer-coding-unsupported",
  },
  ...["text/plain", "application/jsonp", "application/json; charset=utf-16"].map((type) => ({
    title: `the media type ${type}`,
    request: () => signPayout({ contentType: type }),
    answer: problem(415, { code: "media-type-unsupported" }),
  })),
  ...(
    [
      ["an empty body", "", "json-empty"],
      ["no JSON", "idempotency_key=a.b.c"],
      ["half of a body", payoutText.slice(0, -20)],
      ["a member twice", payoutText.replace("{", '{"business_id":"biz_2",'), "json-duplicate-key"],
      [
        "a member that reaches a prototype",
        payoutText.replace("{", '{"__proto__":{"amount":{}},'),
        "json-forbidden-key",
      ],
      ["half a character", payoutText.replace("op_1", String.raw`op_\ud800`), "json-lone-surrogate"],
      [
        "bytes that are no UTF-8",
        Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')]),
      ],
      ["nesting without end", `${"[".repeat(1_000)}${"]".repeat(1_000)}`, "json-too-deep"],
    ] satisfies readonly (readonly [title: string, body: string | Buffer, code?: string])[]
  ).map(([title, body, code = "json-invalid"]) => ({
    title,
    request: () => signBody(body),
    answer: problem(400, { code }),
  })),
].map((row): Row => ({
  scene,
  ran: 0,
  recorded: "free",
  code: String(JSON.parse(row.answer.body).code),
  ...row,
}));

const methods: readonly Row[] = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"].flatMap((method) => {
  const body = ["GET", "HEAD"].includes(method) ? "" : payoutText;
  const answer = problem(405, { code: "method-not-allowed" }, { allow: "POST" });
  return [
    {
      ...refused,
      title: `${method}, rightly signed`,
      request: () => signPayout({ method, body }),
      answer: method === "HEAD" ? { ...answer, body: "" } : answer,
      code: "method-not-allowed",
    },
    {
      ...refused,
      title: `${method} without a signature`,
      request: () => ({ method, path: "/api/v1/transaction", headers: [], body: Buffer.alloc(0) }),
      answer: method === "HEAD" ? { ...payoutUnauthorized, body: "" } : payoutUnauthorized,
      code: "signature-missing",
    },
  ];
});

const spoofed = [
  "X-Forwarded-For",
  "Forwarded",
  "X-Real-IP",
  "CF-Connecting-IP",
  "True-Client-IP",
  "X-Client-IP",
];
const addresses: readonly Row[] = [
  ...(["192.0.2.1", "127.0.0.2", "128.0.0.0/1", "::1", "::/1"] as const).map((rule) => ({
    ...refused,
    title: `an address that is not ${rule}`,
    scene: payoutScene({ options: { addresses: { allow: [rule] } } }),
    request: () => signPayout(),
    code: "ip-not-allowed",
  })),
  ...spoofed.map((name) => ({
    ...refused,
    title: `an admitted address in ${name}, from another one`,
    scene: payoutScene({ options: { addresses: { allow: ["192.0.2.1"] } } }),
    request: () => withLine(name, name === "Forwarded" ? "for=192.0.2.1" : "192.0.2.1"),
    code: "ip-not-allowed",
  })),
  ...(["127.0.0.0/8", "127.0.0.1/32", "::ffff:127.0.0.1", "::ffff:127.0.0.0/104"] as const).map((rule) => ({
    title: `an address within ${rule}`,
    scene: payoutScene({ options: { addresses: { allow: [rule] } } }),
    request: () => signPayout(),
    answer: acknowledged,
  })),
  {
    title: "an address of a list that changes",
    scene: payoutScene({
      options: { addresses: { allow: { isAllowed: (address) => address === "127.0.0.1" } } },
    }),
    request: () => signPayout(),
    answer: acknowledged,
  },
  {
    title: "any address, while there is no good list",
    scene: payoutScene({
      options: {
        addresses: {
          allow: {
            isAllowed() {
              throw new Error("down");
            },
          },
        },
      },
    }),
    request: () => signPayout(),
    code: "allowlist-unavailable",
    answer: unavailable(30),
  },
];

const never = new Promise<never>(() => {});
const down = (): never => {
  throw new Error("down");
};
const nonceClaims = {
  "a nonce store that throws": down,
  "a nonce store that rejects": async () => down(),
  "a nonce store that is late": () => never,
};
const keyLookUps = {
  "a key store that throws": down,
  "a key store that rejects": async () => down(),
  "a key store that is late": () => never,
};

// Below what the interface asks for no policy can go.
const lowPolicies = {
  "a policy without a required nonce": { requiredParameters: ["keyid", "created"] },
  "a policy with another algorithm": { algorithms: ["hmac-sha256"] },
  "a policy without the digest": { requiredComponents: ["@method", "@path"] },
} as const;

const stores: readonly Row[] = [
  ...Object.entries(lowPolicies).map(([title, policy]) => ({
    title: `${title} of a payout`,
    scene: payoutScene({ options: { signature: { policy: () => policy as never } } }),
    code: "policy-unusable",
  })),
  ...Object.entries(nonceClaims).map(([title, claim]) => ({
    title,
    scene: payoutScene({
      options: { signature: { nonces: { claim }, storeTimeoutMs: 20 }, idempotency: { storeTimeoutMs: 20 } },
    }),
    code: "nonce-store-unavailable",
  })),
  {
    title: "a nonce store that is full",
    scene: payoutScene({ options: { signature: { nonces: fullNonceStore() } } }),
    code: "nonce-store-unavailable",
  },
  ...Object.entries(keyLookUps).map(([title, keys]) => ({
    title,
    scene: payoutScene({
      options: { signature: { keys, storeTimeoutMs: 20 }, idempotency: { storeTimeoutMs: 20 } },
    }),
    code: "key-store-unavailable",
  })),
].map((row) => ({ ...refused, request: () => signPayout(), answer: unavailable(), ...row }));

const replays: readonly Row[] = [
  {
    ...refused,
    title: "a nonce that was seen",
    scene: payoutScene({ options: { signature: { nonces: { claim: () => "seen" } } } }),
    request: () => signPayout(),
    code: "nonce-replayed",
  },
  ...(["@method", "@path", "content-type", "content-digest"] as const).map((name) => ({
    ...refused,
    title: `a signature that does not cover ${name}`,
    request: () => signPayout({ covered: coveredBut(name) }),
    code: "component-required",
  })),
];

export const payoutRows: readonly Row[] = [
  ...genuine,
  ...partners,
  ...hostile,
  ...bodies,
  ...methods,
  ...addresses,
  ...stores,
  ...replays,
  ...inAnotherCase,
  ...targets,
];

function fullNonceStore(): ReturnType<typeof memoryNonceStore> {
  const store = memoryNonceStore({ max: 1 });
  void store.claim({ scope: "other", nonce: "1", token: "1", retainMs: 3_600_000 });
  return store;
}

function coveredBut(left: string): readonly (readonly [string, string])[] {
  const covered: readonly (readonly [string, string])[] = [
    ["@method", "POST"],
    ["@path", "/api/v1/transaction"],
    ["content-type", "application/json"],
    ["content-digest", sha256Field(Buffer.from(payoutText))],
  ];
  return covered.filter(([name]) => name !== left).map(([name, value]) => [`"${name}"`, value]);
}

function withNote(signed: string, lines: readonly string[]): WireRequest {
  const covered = [...coveredBut(""), ['"x-note"', signed] as const];
  const request = signPayout({ covered });
  return { ...request, headers: [...request.headers, ...lines.flatMap((line) => ["X-Note", line])] };
}

function withLine(name: string, value: string, request: WireRequest = signPayout()): WireRequest {
  return { ...request, headers: [...request.headers, name, value] };
}

function withCapitals({ headers, ...request }: WireRequest): WireRequest {
  return { ...request, headers: headers.map((text, index) => (index % 2 === 0 ? text.toUpperCase() : text)) };
}

function twoDigests(other: string): string {
  return `${other}, ${sha256Field(Buffer.from(payoutText))}`;
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
