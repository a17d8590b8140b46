import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "@jest/globals";
import { run, temporaryFolder } from "./cli-bench.ts";

// The key of RFC 8037 appendix A.2, whose thumbprint is in A.3.
const x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const jwk = { kty: "OKP", crv: "Ed25519", x };
const thumbprint = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), Buffer.from(x, "base64url")]);
const pem = `-----BEGIN PUBLIC KEY-----\n${der.toString("base64")}\n-----END PUBLIC KEY-----\n`;
const { privateKey } = generateKeyPairSync("ed25519");
const privateJwk = { ...privateKey.export({ format: "jwk" }), kid: "bad" };

const folder = temporaryFolder();

const check = (name: string, content: unknown, ...flags: string[]) => {
  const file = path.join(folder, name);
  const isPlain = typeof content === "string" || Buffer.isBuffer(content);
  writeFileSync(file, isPlain ? content : JSON.stringify(content));
  return run(["keys", "check", file, ...flags]);
};

describe("countersign keys check", () => {
  test.each<[string, unknown, string]>([
    ["service-1.pem", pem, "service-1"],
    ["service-1.public.pem", pem, "service-1"],
    ["service-1.txt", der.subarray(12).toString("base64"), "service-1"],
    ["key.jwk", { ...jwk, kid: "k1" }, "k1"],
    ["keys.jwks", { keys: [{ ...jwk, kid: "k1" }] }, "k1"],
    ["unnamed.jwks", { keys: [jwk] }, thumbprint],
    ["keys.json", { k1: pem }, "k1"],
  ])("prints keyid, algorithm, thumbprint and validity of %s", async (name, content, keyid) => {
    const { code, out, err } = await check(name, content);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["keyid", "alg", "thumbprint (RFC 7638)", "validity"],
      [keyid, "ed25519", thumbprint, "no limit"],
      [""],
    ]);
  });

  test("says when keys begin and end", async () => {
    const { out } = await check("keys.jwks", {
      keys: [
        { ...jwk, kid: "past", nbf: 1_000_000_000, exp: 1_100_000_000 },
        { ...jwk, kid: "future", nbf: 4_000_000_000, exp: 99_999_999_999 },
        { ...jwk, kid: "revoked", revoked: { revoked_at: 1_200_000_000 } },
      ],
    });
    expect(out).toContain("since 2001-09-09T01:46:40Z, ended 2004-11-09T11:33:20Z");
    expect(out).toContain("not before 2096-10-02T07:06:40Z, until 5138-11-16T09:46:39Z");
    expect(out).toContain("revoked 2008-01-10T21:20:00Z");
  });

  test("--json prints one document a key, and --keyid names it", async () => {
    const { code, out } = await check("a.pem", pem, "--json", "--keyid", "k1");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ keyid: "k1", alg: "ed25519", thumbprint, retired: false });
  });

  test("prints the good keys of a set, a line for each bad one, and ends with 1", async () => {
    const { code, out, err } = await check("keys.jwks", { keys: [{ ...jwk, kid: "good" }, privateJwk] });
    expect(code).toBe(1);
    expect(out).toMatch(/^keyid .*\ngood .*\n$/);
    expect(err).toMatch(
      /^error: key bad: the JWK is a private key; .*openssl pkey -in private\.pem -pubout\n$/,
    );
    expect(out + err).not.toContain(privateJwk.d);
  });

  test("prints the good keys of a set and its keys for others, and ends with 0", async () => {
    const keys = [
      { ...jwk, kid: "good" },
      { ...jwk, kid: "good", use: "enc" },
    ];
    const { code, out, err } = await check("keys.jwks", { keys });
    expect({ code, err }).toEqual({ code: 0, err: "left out: key good: the JWK has another use than sig\n" });
    expect(out).toMatch(/^keyid .*\ngood .*\n$/);
  });

  test.each<[string, unknown, RegExp]>([
    ["a private key", privateKey.export({ type: "pkcs8", format: "pem" }), /private key.*openssl pkey -in/],
    ["a private JWK", privateJwk, /private key/],
    ["a certificate", pem.replaceAll("PUBLIC KEY", "CERTIFICATE"), /certificate/i],
    ["an empty file", "", /key k: /],
    ["an empty set", { keys: [] }, /the file holds no key/],
    ["an empty record", {}, /holds no key/],
    ["JSON that is cut short", '{"keys":[', /cannot be parsed/],
    [
      "a keyid twice",
      {
        keys: [
          { ...jwk, kid: "a" },
          { ...jwk, kid: "a" },
        ],
      },
      /2 of 2 keys that fit/,
    ],
    ["a kid that clears a terminal", { keys: [{ ...jwk, kid: "\u001B[2J" }] }, /"\\u001b\[2J": .*printable/],
  ])("refuses %s with one line", async (_title, content, expected) => {
    const { code, out, err } = await check("k.pem", content);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(expected);
    expect(err).toMatch(/^error: [ -~]+\n$/);
  });

  test("a file that is not there is an error of usage", async () => {
    const { code, err } = await run(["keys", "check", path.join(folder, "none.pem")]);
    expect(code).toBe(2);
    expect(err).toContain("cannot be read (ENOENT)");
  });
});
