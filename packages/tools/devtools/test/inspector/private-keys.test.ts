import { generateKeyPairSync, randomBytes, type KeyObject } from "node:crypto";
import { masking } from "../../dist/loopback/index.js";
import { describe, expect, test } from "@jest/globals";
import { encodings } from "./encodings.ts";

// Made here: keys of nobody.
const ed25519 = generateKeyPairSync("ed25519");
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const encryption = { cipher: "aes-256-cbc", passphrase: "test" };

type Form = "pkcs8" | "pkcs1" | "sec1";
const pem = (key: KeyObject, type: Form, more: object = {}): string =>
  String(key.export({ type, format: "pem", ...more } as never)).trim();
const der = (key: KeyObject, type: Form, more: object = {}): Buffer =>
  Buffer.from(key.export({ type, format: "der", ...more } as never) as never);
const text = (value: string): Buffer =>
  Buffer.concat([Buffer.from([0, 0, 0, value.length]), Buffer.from(value)]);
// As https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key begins.
const openssh = Buffer.concat([
  Buffer.from("openssh-key-v1\0"),
  text("none"),
  text("none"),
  randomBytes(200),
]);
const armoured = (name: string, bytes: Buffer, head = ""): string =>
  [
    `-----BEGIN ${name}-----`,
    head,
    bytes.toString("base64").replaceAll(/.{64}/g, "$&\n"),
    `-----END ${name}-----`,
  ].join("\n");

const armours: readonly (readonly [name: string, text: string])[] = [
  ["PKCS#8 of Ed25519", pem(ed25519.privateKey, "pkcs8")],
  ["PKCS#8 of P-256", pem(ec.privateKey, "pkcs8")],
  ["PKCS#8 of RSA", pem(rsa.privateKey, "pkcs8")],
  ["PKCS#8, encrypted", pem(rsa.privateKey, "pkcs8", encryption)],
  ["RSA", pem(rsa.privateKey, "pkcs1")],
  ["RSA, encrypted", pem(rsa.privateKey, "pkcs1", encryption)],
  ["EC", pem(ec.privateKey, "sec1")],
  ["OPENSSH", armoured("OPENSSH PRIVATE KEY", openssh)],
  ["PGP", armoured("PGP PRIVATE KEY BLOCK", randomBytes(300), "Version: 1\n")],
  [
    "SSH2",
    armoured("SSH2 ENCRYPTED PRIVATE KEY", randomBytes(300))
      .replaceAll("-----", "----")
      .replaceAll(/----(?=[BE])/g, "---- "),
  ],
];

const bare: readonly (readonly [name: string, bytes: Buffer])[] = [
  ["PKCS#8 of Ed25519", der(ed25519.privateKey, "pkcs8")],
  ["PKCS#8 of P-256", der(ec.privateKey, "pkcs8")],
  ["PKCS#8 of RSA", der(rsa.privateKey, "pkcs8")],
  ["PKCS#8, encrypted", der(ed25519.privateKey, "pkcs8", encryption)],
  ["RSA", der(rsa.privateKey, "pkcs1")],
  ["EC", der(ec.privateKey, "sec1")],
  ["OPENSSH", openssh],
];

const ways: readonly (readonly [name: string, encode: (text: string) => string])[] = [
  ["as it is", (each) => each],
  ...[
    "JSON",
    "JSON of escapes alone",
    "percent-encoded",
    "of a form",
    "hex",
    "base64",
    "base64url",
    "base64 in lines",
  ].map((name) => [name, encodings.get(name) ?? ((): string => "no such encoding")] as const),
  ["JSON in base64", (each) => Buffer.from(JSON.stringify({ key: each })).toString("base64")],
];

const mask = masking.of({});

describe("maskerOf, of private keys that nobody named", () => {
  describe.each(ways)("%s", (way, encode) => {
    test.each(armours)("finds the armour of %s", (_name, armour) => {
      const shown = mask(`before "${encode(armour)}" after`);
      if (way !== "JSON in base64") expect(shown).toBe(`before "${masking.text}" after`);
      expect(shown).toContain(masking.text);
      // What is left of the JSON around it.
      expect(shown.length).toBeLessThan(60);
    });

    test.each(bare)("finds %s without an armour", (_name, bytes) => {
      const shown = mask(`before "${encode(bytes.toString("base64"))}" after`);
      if (way !== "JSON in base64") expect(shown).toBe(`before "${masking.text}" after`);
      expect(shown).toContain(masking.text);
      expect(shown.length).toBeLessThan(60);
    });

    test.each([
      ["Ed25519", ed25519.privateKey],
      ["P-256", ec.privateKey],
      ["RSA", rsa.privateKey],
    ])("finds a JWK of %s", (_name, key) => {
      const jwk = key.export({ format: "jwk" }) as Record<string, string>;
      for (const written of [JSON.stringify(jwk), JSON.stringify({ keys: [jwk] }, undefined, 2)]) {
        const shown = mask(encode(written));
        for (const name of ["d", "p", "q", "dp", "dq", "qi"].filter((each) => each in jwk)) {
          // The middle of the value, wherever its groups of base64 begin.
          const value = String(jwk[name]);
          for (const at of [0, 1, 2]) {
            expect(shown).not.toContain(
              encode(value.slice(3 + at, -2))
                .replace(/=*$/, "")
                .slice(4, -4),
            );
          }
        }
        if (way === "as it is") expect(shown).toContain(`"kty":`.slice(0, 6));
      }
    });
  });

  test.each(bare)("finds the bytes of %s, read as latin1, and in hex", (_name, bytes) => {
    // Bytes of a new key can look like so many nested encodings that the text is masked as a whole (4 of 1,000 RSA keys).
    expect([`<${masking.text}`, masking.text]).toContain(mask(`<${bytes.toString("latin1")}`));
    expect(mask(`<${bytes.toString("hex")}>`)).toBe(`<${masking.text}>`);
  });

  test("finds the private members of a JWK that is no text", () => {
    const jwk = ed25519.privateKey.export({ format: "jwk" });
    expect(mask({ jwk, d: "short" })).toEqual({ jwk: { ...jwk, d: masking.text }, d: "short" });
  });

  test("finds an armour whose end is cut off, to the end of the text", () => {
    expect(mask(`a ${(armours[4]?.[1] ?? "").slice(0, 400)}`)).toBe(`a ${masking.text}`);
  });

  test.each([
    ["a public key", pem(rsa.publicKey, "spki" as never)],
    ["DER of a public key", rsa.publicKey.export({ type: "spki", format: "der" }).toString("base64")],
    ["RSA's own form of one", rsa.publicKey.export({ type: "pkcs1", format: "pem" }).toString()],
    ["a public JWK", JSON.stringify(ec.publicKey.export({ format: "jwk" }))],
    ["the words", "a PRIVATE KEY is no -----BEGIN PUBLIC KEY-----"],
  ])("leaves %s", (_name, value) => {
    expect(mask(value)).toBe(value);
  });
});
