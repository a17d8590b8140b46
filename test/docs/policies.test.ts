import { createHash, createPrivateKey, createPublicKey, sign, type JsonWebKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import type { ReceivedRequest } from "@countersign/core";
import { importVerificationKey, jwkThumbprint, verify } from "@countersign/http-message-signatures";
import {
  httpSignatureVerifier,
  memoryNonceStore,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import * as adcp from "../../examples/snippets/dist/policy-adcp.js";
import * as rfc9421 from "../../examples/snippets/dist/policy-rfc9421.js";
import * as ucp from "../../examples/snippets/dist/policy-ucp.js";
import * as webBotAuth from "../../examples/snippets/dist/policy-web-bot-auth.js";
import { expectWarning } from "../support/runs/expect-warning.ts";

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = read("site/pages/reference/policies.md");
const jwks = JSON.parse(
  read("packages/kernel/http-message-signatures/test/fixtures/rfc9421-keys.json"),
) as Readonly<Record<"ed25519" | "p256", JsonWebKey>>;

test.each(["rfc9421", "web-bot-auth", "ucp", "adcp"])(
  "the page shows the policy %s, to the letter",
  (name) => {
    const file = `examples/snippets/src/policy-${name}.ts`;
    expect(page).toContain(`\`\`\`ts file=${file}\n${read(file)}\`\`\``);
  },
);

const now = 1_800_000_000;
const body = '{"items":[{"id":"7"}]}';
const contentDigest = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;

/** A message and what is signed of it, in text: no code of the packages makes the base or the signature. */
interface Draft {
  readonly method: string;
  readonly target: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly covered: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, string>>;
  readonly key: keyof typeof jwks;
  readonly body?: string;
}

function signed({
  method,
  target,
  fields,
  covered,
  parameters,
  key,
  body: text = "",
}: Draft): ReceivedRequest {
  const names = Object.keys(covered).join(" ");
  const written = Object.entries(parameters).map(([name, value]) => `;${name}=${value}`);
  const input = `(${names})${written.join("")}`;
  const lines = Object.entries(covered).map(([name, value]) => `${name}: ${value}\n`);
  const base = Buffer.from(`${lines.join("")}"@signature-params": ${input}`);
  const privateKey = createPrivateKey({ key: jwks[key], format: "jwk" });
  const digest = key === "p256" ? "sha256" : null;
  const bytes = sign(digest, base, { key: privateKey, dsaEncoding: "ieee-p1363" });
  const header = {
    ...fields,
    "Signature-Input": `sig1=${input}`,
    Signature: `sig1=:${bytes.toString("base64")}:`,
  };
  return received({ method, target, rawHeaders: Object.entries(header).flat(), text });
}

function received({
  text,
  ...message
}: Pick<ReceivedRequest, "method" | "target" | "rawHeaders"> & { readonly text: string }): ReceivedRequest {
  return {
    ...message,
    scheme: "https",
    clientAddress: "127.0.0.1",
    body: () => Promise.resolve(Buffer.from(text)),
  };
}

async function codeOf(
  request: ReceivedRequest,
  policy: HttpSignatureVerifyOptions,
  time: number = now,
): Promise<string | undefined> {
  if (policy === rfc9421.policy) expectWarning(/^\[signature-covers-little\]/);
  const check = httpSignatureVerifier({ ...policy, nonces: memoryNonceStore(), clock: () => time * 1000 });
  try {
    await check(request);
    return undefined;
  } catch (error) {
    return (error as { readonly code: string }).code;
  }
}

const without = (record: Readonly<Record<string, string>>, left: string): Record<string, string> =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== left));

const agent = '"https://agent.example"';
const bot: Draft = {
  method: "GET",
  target: "/catalog?page=2",
  fields: { "Signature-Agent": `sig1=${agent};type=directory` },
  covered: { '"@authority"': "shop.example", '"signature-agent";key="sig1"': `${agent};type=directory` },
  parameters: {
    created: String(now),
    expires: String(now + 300),
    keyid: '"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"',
    tag: '"web-bot-auth"',
  },
  key: "ed25519",
};
const earlierBot: Draft = {
  ...bot,
  fields: { "Signature-Agent": agent },
  covered: { '"@authority"': "shop.example", '"signature-agent"': agent },
};

const profile = 'profile="https://platform.example/.well-known/ucp"';
const lookup: Draft = {
  method: "GET",
  target: "/checkout-sessions/chk_123",
  fields: { "UCP-Agent": profile },
  covered: {
    '"@method"': "GET",
    '"@authority"': "merchant.example",
    '"@path"': "/checkout-sessions/chk_123",
    '"ucp-agent"': profile,
  },
  parameters: { created: String(now), keyid: '"platform-2026"' },
  key: "p256",
};
const checkout: Draft = {
  ...lookup,
  method: "POST",
  target: "/checkout-sessions",
  fields: {
    "UCP-Agent": profile,
    "Idempotency-Key": "550e8400",
    "Content-Type": "application/json",
    "Content-Digest": contentDigest,
  },
  covered: {
    ...lookup.covered,
    '"@method"': "POST",
    '"@path"': "/checkout-sessions",
    '"idempotency-key"': "550e8400",
    '"content-digest"': contentDigest,
    '"content-type"': "application/json",
  },
  body,
};

const buyer: Draft = {
  method: "POST",
  target: "/adcp/create_media_buy",
  fields: { "Content-Type": "application/json", "Content-Digest": contentDigest },
  covered: {
    '"@method"': "POST",
    '"@target-uri"': "https://seller.example/adcp/create_media_buy",
    '"@authority"': "seller.example",
    '"content-type"': "application/json",
    '"content-digest"': contentDigest,
  },
  parameters: {
    created: String(now),
    expires: String(now + 300),
    nonce: '"KXYnfEfJ0PBRZXQyVXfVQA"',
    keyid: '"buyer-2026"',
    alg: '"ed25519"',
    tag: '"adcp/request-signing/v1"',
  },
  key: "ed25519",
  body,
};

const example: Draft = {
  method: "POST",
  target: "/foo?param=Value&Pet=dog",
  fields: {
    Date: "Tue, 20 Apr 2021 02:07:55 GMT",
    "Content-Type": "application/json",
    "Content-Length": "18",
  },
  covered: {
    '"date"': "Tue, 20 Apr 2021 02:07:55 GMT",
    '"@method"': "POST",
    '"@path"': "/foo",
    '"@authority"': "example.com",
    '"content-type"': "application/json",
    '"content-length"': "18",
  },
  parameters: { created: String(now), keyid: '"test-key-ed25519"' },
  key: "ed25519",
  body: '{"hello": "world"}',
};

const p256 = createPublicKey({ key: jwks.p256, format: "jwk" });
const es256Policy: HttpSignatureVerifyOptions = { ...adcp.policy, keys: { "buyer-2026": p256 } };
const es256: Draft = {
  ...buyer,
  key: "p256",
  parameters: { ...buyer.parameters, alg: '"ecdsa-p256-sha256"' },
};

/** What each policy requires, and what it refuses with a code. */
const rows: readonly (readonly [
  name: string,
  policy: HttpSignatureVerifyOptions,
  draft: Draft,
  component: string,
  parameter: Readonly<Record<string, string>>,
  code: string,
])[] = [
  ["RFC 9421 B.2.6", rfc9421.policy, example, '"date"', { alg: '"rsa-pss-sha512"' }, "alg-mismatch"],
  [
    "Web Bot Auth",
    webBotAuth.policy,
    bot,
    '"signature-agent";key="sig1"',
    { tag: '"other"' },
    "tag-mismatch",
  ],
  [
    "earlier Web Bot Auth",
    webBotAuth.earlierPolicy,
    earlierBot,
    '"@authority"',
    { tag: '"other"' },
    "tag-mismatch",
  ],
  ["a lookup of UCP", ucp.readPolicy, lookup, '"ucp-agent"', { alg: '"ed25519"' }, "alg-mismatch"],
  ["a checkout of UCP", ucp.writePolicy, checkout, '"idempotency-key"', { alg: '"ed25519"' }, "alg-mismatch"],
  ["AdCP", adcp.policy, buyer, '"content-digest"', { tag: '"adcp/webhook-signing/v1"' }, "tag-mismatch"],
  ["AdCP by ES256", es256Policy, es256, '"@target-uri"', { alg: '"ed25519"' }, "alg-mismatch"],
];

describe.each(rows)("the policy for %s", (_name, policy, draft, component, parameter, code) => {
  const end = now + (policy === rfc9421.policy ? 60 : 300);

  test("takes what the profile's signer makes", async () => {
    expect(await codeOf(signed(draft), policy)).toBeUndefined();
    expect(await codeOf(signed(draft), policy, end)).toBeUndefined();
  });

  test("refuses a signature that lacks a component", async () => {
    const lacking = signed({ ...draft, covered: without(draft.covered, component) });
    expect(await codeOf(lacking, policy)).toBe("component-required");
  });

  test("refuses another tag or algorithm", async () => {
    const other = signed({ ...draft, parameters: { ...draft.parameters, ...parameter } });
    expect(await codeOf(other, policy)).toBe(code);
  });

  test("refuses a signature that has ended", async () => {
    expect(await codeOf(signed(draft), policy, end + 1)).toBe("signature-expired");
  });
});

test("RFC 9421 B.2.6 is taken as it stands in the RFC", async () => {
  const rawHeaders = [
    ...Object.entries(example.fields).flat(),
    "Signature-Input",
    'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
    "Signature",
    "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
  ];
  const request = received({ method: "POST", target: example.target, rawHeaders, text: example.body ?? "" });
  expect(await codeOf(request, rfc9421.policy, 1_618_884_473)).toBeUndefined();
  expect(await codeOf({ ...request, method: "PUT" }, rfc9421.policy, 1_618_884_473)).toBe(
    "signature-mismatch",
  );
});

test("the keyid of Web Bot Auth is the thumbprint of its key", () => {
  for (const [keyid, key] of Object.entries(webBotAuth.policy.keys)) {
    expect(jwkThumbprint(importVerificationKey(keyid, key as string))).toBe(keyid);
  }
});

test("a nonce of Web Bot Auth is claimed where there is one", async () => {
  const request = signed({ ...bot, parameters: { ...bot.parameters, nonce: '"n"' } });
  const check = httpSignatureVerifier({
    ...webBotAuth.policy,
    nonces: memoryNonceStore(),
    clock: () => now * 1000,
  });
  await expect(check(request)).resolves.toMatchObject({ nonce: "n", tag: "web-bot-auth" });
  await expect(check({ ...request })).rejects.toMatchObject({ code: "nonce-replayed" });
});

test("UCP: a query and a body have to be covered where there are any", async () => {
  const target = `${lookup.target}?a=b`;
  expect(await codeOf(signed({ ...lookup, target }), ucp.readPolicy)).toBe("query-not-covered");
  const covered = { ...lookup.covered, '"@query"': "?a=b" };
  expect(await codeOf(signed({ ...lookup, target, covered }), ucp.readPolicy)).toBeUndefined();
  expect(await codeOf(signed({ ...lookup, body }), ucp.readPolicy)).toBe("body-not-covered");
  expect(await codeOf(signed({ ...checkout, body: "{}" }), ucp.writePolicy)).toBe("content-digest-mismatch");
});

test("UCP: a signature without times is refused by the middleware and taken by verify", async () => {
  const request = signed({ ...lookup, parameters: { keyid: '"platform-2026"' } });
  expect(await codeOf(request, ucp.readPolicy)).toBe("created-invalid");
  const key = importVerificationKey("platform-2026", p256);
  const taken = verify(
    {
      method: request.method,
      target: request.target,
      rawHeaders: request.rawHeaders,
      authority: "merchant.example",
    },
    {
      requiredComponents: ucp.readPolicy.requiredComponents ?? [],
      requiredParameters: ["keyid"],
      algorithms: ["ecdsa-p256-sha256"],
      windowSeconds: 300,
      clockSkewSeconds: 30,
      keys: () => key,
    },
  );
  expect(taken.created).toBeUndefined();
});
