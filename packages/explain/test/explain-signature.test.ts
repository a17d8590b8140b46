import { createHmac, sign } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { importVerificationKey } from "@countersign/http-message-signatures";
import { explainSignature } from "../dist/index.js";
import {
  line,
  mistaken,
  now,
  samplePath,
  servicePublicPem,
  strangerKey,
  verifier,
} from "./signed-with-mistake.ts";

describe("explainSignature", () => {
  test("says that an honest request verifies", async () => {
    await expect(explainSignature(mistaken(), verifier)).resolves.toMatchObject({
      what: "verifies",
      code: undefined,
      attempts: 0,
    });
  });

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

  test("tells apart a key of another keyid from one that nobody knows", async () => {
    const keys = { "key-2024": servicePublicPem };
    const known = await explainSignature(mistaken({ plan: { keyid: "other" } }), { ...verifier, keys });
    expect(known.what).toBe("keyid-other-name");
    const stranger = mistaken({ plan: { keyid: "other", key: strangerKey } });
    expect((await explainSignature(stranger, { ...verifier, keys })).what).toBe("key-unknown");
  });

  test.each([
    ["no keys", {}],
    ["keys that are no record", []],
    ["a key that is none", { a: "text" }],
  ])("refuses %s", async (_, keys) => {
    await expect(explainSignature(mistaken(), { ...verifier, keys: keys as never })).rejects.toThrow(
      TypeError,
    );
  });

  test.each([
    [{ maxAttempts: -1 }],
    [{ signerBase: 1 as never }],
    [{ pathPrefixes: ["no-slash"] }],
    [{ unknown: 1 } as never],
  ])("refuses the option %o", async (options) => {
    await expect(explainSignature(mistaken(), { ...verifier, ...options })).rejects.toThrow(TypeError);
  });

  test("refuses what is no request", async () => {
    await expect(explainSignature({ method: "POST" } as never, verifier)).rejects.toThrow("rawHeaders");
  });
});
