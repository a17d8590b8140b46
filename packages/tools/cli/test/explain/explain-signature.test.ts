import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { importVerificationKey } from "@countersign/http-message-signatures";
import type { Keys } from "@countersign/http-signature-verify";
import { sha256Field } from "@countersign/test-support/signers/independent-signer.ts";
import type { ExplainedRequest } from "../../dist/explain/captured-request.js";
import { explainSignature, knownBody } from "../../dist/explain/index.js";
import {
  body,
  line,
  mistaken,
  now,
  samplePath,
  servicePublicPem,
  strangerKey,
  verifier,
  type Mistake,
} from "./signed-with-mistake.ts";

describe("explainSignature", () => {
  test("shows the expected base with its line feeds", async () => {
    const { expectedBase } = await explainSignature(mistaken({ plan: { key: strangerKey } }), verifier);
    expect(expectedBase?.split("\n").slice(0, 2)).toEqual([
      String.raw`"@method": POST\n`,
      String.raw`"@path": ${samplePath}\n`,
    ]);
  });

  test("finds where the signer's own base differs, and that the key is right", async () => {
    let signerBase = "";
    const request = mistaken({
      base: (right) => {
        signerBase = line('"@path"', () => "/somewhere/else/at/all")(right);
        return signerBase;
      },
    });
    await expect(explainSignature(request, { ...verifier, signerBase })).resolves.toMatchObject({
      what: "base-differs",
      sentence:
        'Change the signature base where "@path" differs at character 11 of line 2; the key is the right one.',
      difference: {
        line: 2,
        column: 11,
        component: '"@path"',
        expected: String.raw`"@path": ${samplePath}\n`,
        signer: String.raw`"@path": /somewhere/else/at/all\n`,
      },
    });
  });

  test.each<["@authority" | "@target-uri", string, string]>([
    ["@authority", "platform.example", "other.example"],
    ["@target-uri", `https://platform.example${samplePath}`, `https://other.example${samplePath}`],
  ])("says which server %s was taken to be", async (name, taken, meant) => {
    const request = mistaken({
      plan: {
        covered: [
          [`"${name}"`, taken],
          ['"@method"', "POST"],
          ['"content-digest"', sha256Field(Buffer.from(body))],
        ],
      },
      base: line(`"${name}"`, () => meant),
    });
    const options = { ...verifier, requiredComponents: ["@method"] };
    await expect(explainSignature(request, options)).resolves.toMatchObject({
      what: "signature-unexplained",
      details: [expect.stringContaining(`"${name}" was taken to be "${taken}"; for another server`)],
    });
    const origin = "https://other.example";
    await expect(explainSignature(request, { ...options, origin })).resolves.toMatchObject({
      what: "verifies",
    });
  });

  test("finds that the key is another one when the signer's base is the expected one", async () => {
    let signerBase = "";
    const request = mistaken({
      base: (right) => (signerBase = right),
      sign: (bytes) => sign(null, bytes, strangerKey),
    });
    await expect(explainSignature(request, { ...verifier, signerBase })).resolves.toMatchObject({
      what: "signature-of-other-key",
      difference: undefined,
    });
  });

  test("says what is wrong beside the time of a request that was captured earlier", async () => {
    const request = mistaken({ base: line('"@method"', () => "post") });
    const later = await explainSignature(request, { ...verifier, clock: () => (now + 7000) * 1000 });
    expect(later).toMatchObject({ what: "signature-expired", code: "signature-expired" });
    expect(later.details.join(" ")).toContain('Apart from the time: Sign "@method" as "POST"');
  });

  test("verifies no more signatures than it may", async () => {
    const request = mistaken({ plan: { key: strangerKey } });
    for (const maxAttempts of [0, 1, 40]) {
      const { attempts } = await explainSignature(request, { ...verifier, maxAttempts });
      expect(attempts).toBe(maxAttempts);
    }
  });

  test("lets others have their turn while it tries", async () => {
    let turns = 0;
    const ticking = setInterval(() => (turns += 1), 0);
    await explainSignature(mistaken({ plan: { key: strangerKey } }), verifier);
    clearInterval(ticking);
    expect(turns).toBeGreaterThan(0);
  });

  test("shows no credential that is covered", async () => {
    const covered = [
      ['"@method"', "POST"],
      ['"@path"', samplePath],
      ['"authorization"', "Bearer s3cret-token"],
    ] as const;
    const options = { ...verifier, requiredComponents: ["@method", "@path"], allowUnsignedBody: true };
    const headers = ["Authorization", "Bearer s3cret-token"];
    const wrong = mistaken({ plan: { covered, key: strangerKey }, headers });
    const near = mistaken({
      plan: { covered },
      headers,
      base: line('"authorization"', (v) => v.toLowerCase()),
    });
    let signerBase = "";
    mistaken({ plan: { covered }, base: (right) => (signerBase = right.replace("s3cret", "s4cret")) });
    const all = [
      await explainSignature(wrong, options),
      await explainSignature(near, options),
      await explainSignature(wrong, { ...options, signerBase }),
    ];
    expect(all[1]?.what).toBe("field-lower-case");
    expect(JSON.stringify(all)).not.toMatch(/s[34]cret/i);
    expect(JSON.stringify(all[0])).toContain("(not shown)");
  });

  test("shows nothing of a secret that hmac-sha256 verifies with, nor the expected MAC", async () => {
    const secret = Buffer.alloc(32, "secret-bytes-of-nobody");
    const options = {
      ...verifier,
      keys: { "test-key": importVerificationKey("test-key", secret, { alg: "hmac-sha256" }) },
      algorithms: ["hmac-sha256"] as const,
    };
    let mac = Buffer.alloc(0);
    const request = mistaken({
      plan: { parameters: { alg: '"hmac-sha256"' } },
      sign: (bytes) => {
        mac = createHmac("sha256", secret).update(bytes).digest();
        return createHmac("sha256", secret.toString("base64")).update(bytes).digest();
      },
    });
    const explained = await explainSignature(request, options);
    expect(explained).toMatchObject({ what: "algorithm-other" });
    const shown = JSON.stringify(explained);
    for (const bytes of [secret, mac]) {
      for (const encoding of ["base64", "hex", "base64url", "latin1"] as const) {
        expect(shown).not.toContain(bytes.toString(encoding));
      }
    }
  });

  test.each<[string, object]>([
    ["no keys", { keys: {} }],
    ["keys that are no record", { keys: [] }],
    ["a key that is none", { keys: { a: "text" } }],
    ["fewer than no attempts", { maxAttempts: -1 }],
    ["a base that is no text", { signerBase: 1 }],
    ["a prefix that is no path", { pathPrefixes: ["no-slash"] }],
    ["an unknown option", { unknown: 1 }],
  ])("refuses %s", async (_, options) => {
    await expect(explainSignature(mistaken(), { ...verifier, ...options })).rejects.toThrow(TypeError);
  });

  test("refuses what is no request", async () => {
    await expect(explainSignature({ method: "POST" } as never, verifier)).rejects.toThrow("rawHeaders");
  });
});

describe("explainSignature of a body that nobody has read", () => {
  const unread = (mistake: Mistake = {}): ExplainedRequest => ({ ...mistaken(mistake), body: undefined });
  const coversNoDigest: Mistake = { plan: { covered: [['"@method"', "POST"]] } };

  test("says so where all else fits, and takes it for no empty one", async () => {
    await expect(explainSignature(unread(), verifier)).resolves.toMatchObject({
      what: "body-not-known",
      code: undefined,
      expectedBase: undefined,
      sentence: expect.stringMatching(/^Compare Content-Digest with the bytes that are sent: .* not read/),
      details: ["The signature fits the fields of the request."],
    });
  });

  test("does not hide what is wrong with the time", async () => {
    const clock = (): number => (now + 7000) * 1000;
    const { what, details } = await explainSignature(unread(), { ...verifier, clock });
    expect(what).toBe("signature-expired");
    expect(details.join(" ")).toMatch(/Apart from the time: Compare Content-Digest .* not read/);
  });

  test("finds what the body is not needed for", async () => {
    const lowerCase = unread({ base: line('"@method"', () => "post") });
    await expect(explainSignature(lowerCase, verifier)).resolves.toMatchObject({ what: "method-lower-case" });
    const bare = unread({ base: line('"content-digest"', (value) => value.slice("sha-256=:".length, -1)) });
    await expect(explainSignature(bare, verifier)).resolves.toMatchObject({ what: "content-digest-form" });
    const inHex = unread({ plan: { contentDigest: `sha-256=${"0f".repeat(32)}` } });
    await expect(explainSignature(inHex, verifier)).resolves.toMatchObject({ what: "digest-form" });
  });

  test("says that what was made of it was not tried", async () => {
    const ofBody: Mistake = { base: () => body };
    await expect(explainSignature(mistaken(ofBody), verifier)).resolves.toMatchObject({
      what: "signed-body",
    });
    await expect(explainSignature(unread(ofBody), verifier)).resolves.toMatchObject({
      what: "signature-unexplained",
      details: [expect.stringContaining("The body was not read")],
    });
  });

  test("knows that one which nothing signs is refused, unless that is allowed", async () => {
    const options = { ...verifier, requiredComponents: ["@method"] };
    await expect(explainSignature(unread(coversNoDigest), options)).resolves.toMatchObject({
      what: "body-not-covered",
    });
    await expect(
      explainSignature(unread(coversNoDigest), { ...options, allowUnsignedBody: true }),
    ).resolves.toMatchObject({ what: "verifies" });
  });

  test.each<[string, boolean, Partial<ExplainedRequest>, readonly string[]]>([
    ["a POST with Content-Length: 0", true, {}, ["Content-Length", "0"]],
    ["a GET", true, { method: "GET" }, []],
    ["a POST that says nothing of its length", false, {}, []],
    ["a GET in chunks", false, { method: "GET" }, ["Transfer-Encoding", "chunked"]],
    ["a GET of some length", false, { method: "GET" }, ["Content-Length", "2"]],
  ])("of %s is known: %s", (_name, isKnown, change, lines) => {
    const { rawHeaders, ...rest } = unread();
    const request = { ...rest, ...change, rawHeaders: [...rawHeaders, ...lines] };
    expect(knownBody(request)).toEqual(isKnown ? new Uint8Array() : undefined);
  });
});

describe("the keys of an explanation", () => {
  const key = importVerificationKey("test-key", servicePublicPem);
  const put = { ...mistaken(), method: "PUT" };
  const explained = (keys: Keys, request: ExplainedRequest = put) =>
    explainSignature(request, { ...verifier, keys });

  test("may be asked for, by a function or a store, those of the request alone", async () => {
    const asked: string[] = [];
    const get = async (keyid: string) => {
      asked.push(keyid);
      return keyid === key.keyid ? key : null;
    };
    for (const keys of [get, { get }, (keyid: string) => (keyid === key.keyid ? key : undefined)]) {
      await expect(explained(keys)).resolves.toMatchObject({ what: "method-other" });
    }
    expect(asked).toEqual(["test-key", "test-key"]);
  });

  test("are all tried where a store lists them", async () => {
    const listing = { get: () => undefined, keys: () => [key] };
    await expect(explained(listing)).resolves.toMatchObject({ what: "method-other" });
    const named = mistaken({ plan: { keyid: "production" } });
    await expect(explained(listing, named)).resolves.toMatchObject({
      what: "keyid-other-name",
      details: ['Known keyids: "test-key"'],
    });
  });

  test("that nobody lists are not all tried", async () => {
    const named = mistaken({ plan: { keyid: "production" } });
    await expect(explained(() => undefined, named)).resolves.toMatchObject({
      what: "key-unknown",
      details: ["No other key was tried: the key store lists none."],
    });
  });

  test.each<[string, Keys]>([
    ["rejects", () => Promise.reject(new Error("no connection"))],
    [
      "throws",
      () => {
        throw new Error("no connection");
      },
    ],
  ])("that are in a store that %s are no fault of the signer", async (_name, keys) => {
    await expect(explained(keys)).resolves.toMatchObject({
      what: "key-store-unavailable",
      code: "key-store-unavailable",
      sentence: expect.stringMatching(/^Nothing to change: the key store gave no answer/),
    });
  });

  test.each<[string, Keys]>([
    ["a text that is no key", () => "no key"],
    ["a private key", () => generateKeyPairSync("ed25519").privateKey],
    ["an object that is no JWK", { get: () => Object({ kty: "OKP" }) }],
  ])("are unusable where a store gives %s, which is no fault of the signer", async (_name, keys) => {
    await expect(explained(keys)).resolves.toMatchObject({
      what: "key-unusable",
      code: "key-unusable",
      sentence: expect.stringMatching(/^Nothing to change: the receiver has no usable key under this keyid/),
    });
  });
});
