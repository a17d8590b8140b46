import { afterEach, describe, expect, jest, test } from "@jest/globals";
import {
  httpSignatureVerify,
  memoryNonceStore,
  verifyHttpSignature,
  type HttpSignatureVerifyOptions,
  type PolicyLookup,
  type SignaturePolicy,
} from "@countersign/http-signature-verify";
import express from "express";
import {
  samplePath,
  sha256Field,
  signRequest,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import {
  serviceKey,
  servicePublicPem,
  strangerKey,
  strangerPublicPem,
} from "@countersign/test-support/signers/test-keys.ts";
import { defaults, expressVersions, startPlatform, type Platform } from "./platform.ts";

let platform: Platform;
afterEach(() => platform?.close());

const body = '{"a":1}';
const four = [
  ['"@method"', "POST"],
  ['"@path"', samplePath],
  ['"content-type"', "application/json"],
  ['"content-digest"', sha256Field(Buffer.from(body))],
] as const;
const narrow = [four[0], four[1], four[3]];

const strict: SignaturePolicy = {};
const lax: SignaturePolicy = { requiredComponents: ["@method", "@path", "content-digest"] };
const partners: Readonly<Record<string, SignaturePolicy>> = { strict, lax };
const keys = { strict: servicePublicPem, lax: strangerPublicPem };
const byKeyid: PolicyLookup = ({ keyid }) => (Object.hasOwn(partners, keyid) ? partners[keyid] : undefined);

async function codeOf(
  policy: PolicyLookup,
  plan: SigningPlan,
  options: Partial<HttpSignatureVerifyOptions> = {},
): Promise<string> {
  platform = await startPlatform(express, { keys, policy, ...options });
  const { status } = await platform.send(signRequest({ body, ...plan }));
  return `${status} ${platform.codes.join()}`.trim();
}

describe.each(expressVersions)("option policy on %s", (_version, factory) => {
  test("holds each partner's signature against the policy of its own keyid", async () => {
    platform = await startPlatform(factory, { keys, policy: async (signature) => byKeyid(signature) });
    const statuses = [];
    for (const plan of [
      { keyid: "strict" },
      { keyid: "strict", covered: narrow },
      { keyid: "lax", key: strangerKey },
      { keyid: "lax", key: strangerKey, covered: narrow },
    ]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      statuses.push((await platform.send(signRequest({ body, ...plan }))).status);
    }
    expect(statuses).toEqual([200, 401, 200, 200]);
    expect(platform.codes).toEqual(["component-required"]);
  });
});

describe("option policy", () => {
  test("gives nobody the policy of another partner: the keyid that chose it chooses the key", async () => {
    // Signs with its own key, under the keyid of the partner whose policy asks for less.
    const plan = { keyid: "lax", key: serviceKey, covered: narrow };
    expect(await codeOf(byKeyid, plan)).toBe("401 signature-mismatch");
  });

  test.each<[string, PolicyLookup, string]>([
    ["returns undefined", () => undefined, "401 policy-unknown"],
    ["returns null", () => null, "401 policy-unknown"],
    ["resolves to undefined", async () => undefined, "401 policy-unknown"],
    [
      "throws",
      () => {
        throw new Error("down");
      },
      "503 policy-unusable",
    ],
    ["rejects", () => Promise.reject(new Error("down")), "503 policy-unusable"],
    ["is late", () => new Promise(() => {}), "503 policy-unusable"],
    ["returns a text", () => "strict" as never, "503 policy-unusable"],
    ["returns a list", () => [] as never, "503 policy-unusable"],
    ["returns a misspelt member", () => ({ requiredComponent: [] }) as never, "503 policy-unusable"],
    ["returns no components", () => ({ requiredComponents: [] }), "503 policy-unusable"],
    ["returns a window of a day", () => ({ windowSeconds: 86_400 }), "503 policy-unusable"],
    [
      "requires @authority without origin",
      () => ({ requiredComponents: ["@authority"] }),
      "503 policy-unusable",
    ],
    ["requires another tag", () => ({ tag: { require: "refund" } }), "401 tag-mismatch"],
    ["requires another label", () => ({ label: "other" }), "401 signature-missing"],
    ["takes another algorithm", () => ({ algorithms: ["hmac-sha256"] }), "401 alg-mismatch"],
    ["returns members that are undefined", () => ({ requiredComponents: undefined }), "200"],
  ])("refuses by one answer, or passes, where it %s", async (_title, policy, expected) => {
    expect(await codeOf(policy, { keyid: "strict" }, { storeTimeoutMs: 200 })).toBe(expected);
  });

  test("keeps the options beside it for what a policy leaves open", async () => {
    const options = { requiredComponents: ["@method", "@path", "content-digest"] };
    expect(await codeOf(() => ({ windowSeconds: 60 }), { keyid: "strict", covered: narrow }, options)).toBe(
      "200",
    );
    const tag = { require: "payout" };
    await platform.close();
    expect(await codeOf(() => ({ tag: undefined }), { keyid: "strict" }, { tag })).toBe("401 tag-mismatch");
  });

  test("gives every 401 the same body", async () => {
    const bodies = new Set<string>();
    for (const policy of [byKeyid, () => undefined]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      platform = await startPlatform(express, { keys, policy });
      for (const plan of [{ keyid: "strict", covered: narrow }, { keyid: "nobody" }]) {
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        const { status, body: text } = await platform.send(signRequest({ body, ...plan }));
        bodies.add(`${status} ${text}`);
      }
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await platform.close();
    }
    expect([...bodies]).toEqual(['401 {"type":"about:blank","title":"Unauthorized","status":401}']);
  });

  test("is asked once for each well-formed signature, with what it says of itself", async () => {
    const policy = jest.fn<PolicyLookup>(() => strict);
    const plan = { keyid: "strict", label: "sig9", parameters: { tag: '"payout"' } };
    expect(await codeOf(policy, plan)).toBe("200");
    expect(policy.mock.calls).toEqual([[{ label: "sig9", keyid: "strict", tag: "payout" }]]);
    await platform.close();
    policy.mockClear();
    expect(await codeOf(policy, { keyid: "" })).toBe("401 keyid-invalid");
    expect(policy).not.toHaveBeenCalled();
  });

  test("picks the one signature that meets its own policy, and refuses two", async () => {
    const two = (second: SigningPlan): readonly string[] => {
      const first = signRequest({ body, keyid: "strict", label: "one" });
      const { headers } = signRequest({ body, key: strangerKey, keyid: "lax", label: "two", ...second });
      const added = headers.flatMap((name, at) =>
        at % 2 === 0 && /^signature/i.test(name) ? [name, headers[at + 1] ?? ""] : [],
      );
      return [...first.headers, ...added];
    };
    platform = await startPlatform(express, { keys, policy: byKeyid });
    const signed = signRequest({ body });
    const send = async (second: SigningPlan): Promise<number> =>
      (await platform.send({ ...signed, headers: two(second) })).status;
    expect(await send({ keyid: "nobody" })).toBe(200);
    expect(await send({})).toBe(401);
    expect(platform.codes).toEqual(["signature-ambiguous"]);
  });

  test("bounds a nonce by the window of the partner's policy", async () => {
    const claims: number[] = [];
    const nonces = {
      claim: ({ retainMs }: { readonly retainMs: number }) => (claims.push(retainMs), "fresh" as const),
    };
    const created = 1_700_000_000;
    const clock = (): number => created * 1000;
    const policy = (): SignaturePolicy => ({ windowSeconds: 300 });
    expect(await codeOf(policy, { keyid: "strict", created }, { nonces, clock })).toBe("200");
    // The signature's 60 seconds, and one window with its skew.
    expect(claims).toEqual([390_000]);
  });

  test("requires a nonce store of a policy that requires a nonce", async () => {
    const options = { requiredParameters: ["keyid", "created"], nonces: undefined } as const;
    const policy = (): SignaturePolicy => ({ requiredParameters: ["keyid", "created", "nonce"] });
    expect(await codeOf(policy, { keyid: "strict" }, options)).toBe("503 policy-unusable");
  });

  test("reads a policy object once", async () => {
    let reads = 0;
    const policy = {
      get windowSeconds() {
        reads += 1;
        return 60;
      },
    };
    platform = await startPlatform(express, { keys, policy: () => policy });
    for (let sent = 0; sent < 3; sent += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect((await platform.send(signRequest({ body, keyid: "strict" }))).status).toBe(200);
    }
    expect(reads).toBe(1);
  });

  test("names the member of a policy that cannot be used, for the log", async () => {
    const { method, path: target, headers: rawHeaders, body: bytes } = signRequest({ body, keyid: "strict" });
    const request = { method, target, rawHeaders, scheme: "https", clientAddress: undefined } as const;
    const received = { ...request, body: async () => bytes };
    const options = { keys, nonces: memoryNonceStore(), policy: () => ({ windowSeconds: 0 }) };
    await expect(verifyHttpSignature(received, options)).rejects.toMatchObject({
      status: 503,
      message: expect.stringMatching(/option policy\.windowSeconds must be/),
    });
  });

  test("has to be a function, and takes keys of every algorithm then", () => {
    expect(() => httpSignatureVerify({ ...defaults(), policy: {} as never })).toThrow(
      /^httpSignatureVerify: option policy/,
    );
  });
});
