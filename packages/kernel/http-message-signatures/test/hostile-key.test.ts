import { createHmac, generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import {
  importVerificationKey,
  verify,
  type RequestMessage,
  type TagPolicy,
} from "@countersign/http-message-signatures";
import { key, now, publicKey, signByHand, signedRequest, strict, verdictOf } from "./hand-signer.ts";
import { accepts, good, refuses, withFields, withParameters, type Make } from "./hostile-rows.ts";

describe("algorithm and key", () => {
  refuses([
    ["hmac-sha256", "alg-mismatch", () => withParameters({ alg: '"hmac-sha256"' })],
    ["rsa-pss-sha512", "alg-mismatch", () => withParameters({ alg: '"rsa-pss-sha512"' })],
    ["none", "alg-mismatch", () => withParameters({ alg: '"none"' })],
    ["ED25519 in upper case", "alg-mismatch", () => withParameters({ alg: '"ED25519"' })],
    ["alg as a token", "alg-invalid", () => withParameters({ alg: "ed25519" })],
    ["alg as a flag", "alg-invalid", () => withParameters({ alg: "?1" })],
    ["an empty alg", "alg-invalid", () => withParameters({ alg: '""' })],
    ["alg absent", "alg-invalid", () => withParameters({ alg: undefined })],
    ["keyid absent", "keyid-invalid", () => withParameters({ keyid: undefined })],
    ["keyid as a token", "keyid-invalid", () => withParameters({ keyid: "test-key" })],
    ["keyid as bytes", "keyid-invalid", () => withParameters({ keyid: ":AAAA:" })],
    ["an empty keyid", "keyid-invalid", () => withParameters({ keyid: '""' })],
    ["a keyid of 257 characters", "keyid-invalid", () => withParameters({ keyid: `"${"k".repeat(257)}"` })],
    [
      "an unknown keyid of 256 characters",
      "key-unknown",
      () => withParameters({ keyid: `"${"k".repeat(256)}"` }),
    ],
    ["an unknown keyid", "key-unknown", () => withParameters({ keyid: '"other"' })],
    ["__proto__ as keyid", "key-unknown", () => withParameters({ keyid: '"__proto__"' })],
    [
      "the signature of another key",
      "signature-mismatch",
      () => signedRequest({ key: generateKeyPairSync("ed25519").privateKey }),
    ],
    ["an HMAC with the public key as the secret", "alg-mismatch", hmacByPublicKey],
  ]);

  test.each<[string, string, Parameters<typeof importVerificationKey>[2]]>([
    ["a retired key", "key-retired", { retired: true }],
    ["a key that begins a second after created", "key-retired", { notBefore: now + 1 }],
    ["a key that ended a second before created", "key-retired", { notAfter: now - 1 }],
    ["accepts a key that begins and ends at created", "accepted", { notBefore: now, notAfter: now }],
  ])("%s: %s", (_title, code, validity) => {
    const keys = () => importVerificationKey("test-key", publicKey, validity);
    expect(verdictOf(() => verify(signedRequest(), { ...strict, keys }))).toBe(code);
  });

  test("refuses the record of another keyid", () => {
    const keys = () => importVerificationKey("other", publicKey);
    expect(verdictOf(() => verify(signedRequest(), { ...strict, keys }))).toBe("key-mismatch");
  });

  test.each([null, undefined])("takes %s for an unknown keyid", (nothing) => {
    expect(verdictOf(() => verify(signedRequest(), { ...strict, keys: () => nothing }))).toBe("key-unknown");
  });

  test("refuses a record of another algorithm than alg", () => {
    const algorithms = ["ed25519", "rsa-pss-sha512"] as unknown as readonly "ed25519"[];
    const message = withParameters({ alg: '"rsa-pss-sha512"' });
    expect(verdictOf(() => verify(message, { ...strict, algorithms }))).toBe("alg-mismatch");
  });

  test("refuses a record that was not vetted, also one of small order under which anybody can sign", () => {
    const keys = () => ({ ...key });
    expect(verdictOf(() => verify(signedRequest(), { ...strict, keys }))).toBe("key-mismatch");
  });

  test("asks for a key once, and not before everything cheaper fits", () => {
    const asked: string[] = [];
    const keys = (keyid: string) => {
      asked.push(keyid);
      return key;
    };
    const other = signByHand({ label: "sig2", parameters: { alg: '"none"', keyid: '"other"' } });
    const message = withFields(`${other.input}, ${good.input}`, `${other.signature}, ${good.signature}`);
    verify(message, { ...strict, keys });
    expect(asked).toEqual(["test-key"]);
    expect(verdictOf(() => verify(message, { ...strict, keys, now: now + 61 }))).toBe("signature-expired");
    expect(asked).toEqual(["test-key"]);
  });
});

describe("tag", () => {
  accepts([
    ["no tag", () => withParameters({})],
    ["any tag, where none is asked for", () => withParameters({ tag: '"payout"' })],
    ["an empty tag", () => withParameters({ tag: '""' })],
  ]);
  refuses([
    ["a tag that is a token", "tag-invalid", () => withParameters({ tag: "payout" })],
    ["a tag that is an integer", "tag-invalid", () => withParameters({ tag: "1" })],
    ["a tag that is a decimal", "tag-invalid", () => withParameters({ tag: "1.0" })],
    ["a tag that is a boolean", "tag-invalid", () => withParameters({ tag: "?1" })],
    ["a tag without a value", "tag-invalid", () => withFields(`${good.input};tag`, good.signature)],
    ["a tag that is bytes", "tag-invalid", () => withParameters({ tag: ":AAAA:" })],
    ["a tag twice", "field-invalid", () => withFields(`${good.input};tag="a";tag="a"`, good.signature)],
  ]);

  const required = { require: ["payout", "refund"] };
  const excluded = { exclude: ["web-bot-auth"] };
  test.each<[string, TagPolicy, string | undefined, string]>([
    ["one that is required", required, '"refund"', "accepted"],
    ["another than is required", required, '"webhook"', "tag-mismatch"],
    ["one in another case", required, '"Payout"', "tag-mismatch"],
    ["one with a space behind it", required, '"payout "', "tag-mismatch"],
    ["none where one is required", required, undefined, "tag-mismatch"],
    ["an empty one where one is required", required, '""', "tag-mismatch"],
    ["a token where one is required", required, "payout", "tag-invalid"],
    ["one that is excluded", excluded, '"web-bot-auth"', "tag-mismatch"],
    ["another than is excluded", excluded, '"payout"', "accepted"],
    ["none where one is excluded", excluded, undefined, "accepted"],
    ["any, where no value can be", { require: [] }, '"payout"', "tag-mismatch"],
    ["one that is required and excluded", { ...required, exclude: ["payout"] }, '"payout"', "tag-mismatch"],
  ])("%s: %j and %s give %s", (_title, tag, value, verdict) => {
    expect(verdictOf(() => verify(withParameters({ tag: value }), { ...strict, tag }))).toBe(verdict);
  });

  test("is a fault of the caller's own where one string stands for a list", () => {
    for (const tag of [{ require: "payout" }, { exclude: "payout" }] as unknown as TagPolicy[]) {
      expect(() => verify(withParameters({ tag: '"pay"' }), { ...strict, tag })).toThrow(TypeError);
    }
  });

  test("tells the signature that is meant from those of others, whatever the order", () => {
    const bot = signByHand({ label: "bot", parameters: { tag: '"web-bot-auth"' } });
    const odd = signByHand({ label: "odd", parameters: { tag: "payout" } });
    const payout = signByHand({ parameters: { tag: '"payout"' } });
    const message = withFields(
      `${bot.input}, ${odd.input}, ${payout.input}`,
      `${payout.signature}, ${odd.signature}, ${bot.signature}`,
    );
    expect(verdictOf(() => verify(message, strict))).toBe("signature-ambiguous");
    for (const tag of [required, excluded]) {
      expect(verify(message, { ...strict, tag })).toMatchObject({ label: "sig1", tag: "payout" });
    }
  });
});

describe("time and nonce", () => {
  const times = ["created", "expires"] as const;
  refuses(
    times.flatMap((name) =>
      [
        ["absent", undefined],
        ["a string", `"${now}"`],
        ["a token", "soon"],
        ["a boolean", "?1"],
        ["a decimal", `${now}.0`],
        ["negative", "-1"],
        ["bytes", ":AAAA:"],
      ].map(([title, value]): readonly [string, string, Make] => [
        `${name} that is ${title}`,
        `${name}-invalid`,
        () => withParameters({ [name]: value }),
      ]),
    ),
  );
  refuses([
    ["created of 16 digits", "field-invalid", () => withParameters({ created: "1".repeat(16) })],
    ["expires of 16 digits", "field-invalid", () => withParameters({ expires: "1".repeat(16) })],
    ["expires at created", "expires-invalid", () => withParameters({ expires: String(now) })],
    ["expires before created", "expires-invalid", () => withParameters({ expires: String(now - 1) })],
    ["a window of 61 seconds", "window-too-long", () => withParameters({ expires: String(now + 61) })],
    ["expires of 15 digits", "window-too-long", () => withParameters({ expires: "9".repeat(15) })],
    [
      "created 31 seconds ahead",
      "created-in-future",
      () => withParameters({ created: String(now + 31), expires: String(now + 60) }),
    ],
    [
      "a second after expires",
      "signature-expired",
      () => withParameters({ created: String(now - 61), expires: String(now - 1) }),
    ],
    ["nonce absent", "nonce-invalid", () => withParameters({ nonce: undefined })],
    ["an empty nonce", "nonce-invalid", () => withParameters({ nonce: '""' })],
    ["nonce as a token", "nonce-invalid", () => withParameters({ nonce: "abc" })],
    ["nonce as an integer", "nonce-invalid", () => withParameters({ nonce: "1" })],
    ["a nonce of 129 characters", "nonce-invalid", () => withParameters({ nonce: `"${"n".repeat(129)}"` })],
  ]);
  accepts([
    ["a nonce of 128 characters", () => withParameters({ nonce: `"${"n".repeat(128)}"` })],
    [
      "created 30 seconds ahead",
      () => withParameters({ created: String(now + 30), expires: String(now + 60) }),
    ],
    ["the second of expires", () => withParameters({ created: String(now - 60), expires: String(now) })],
  ]);
});

function hmacByPublicKey(): RequestMessage {
  const { input, base } = signByHand({ parameters: { alg: '"hmac-sha256"' } });
  const secret = publicKey.export({ format: "der", type: "spki" }).subarray(12);
  return withFields(input, `sig1=:${createHmac("sha256", secret).update(base).digest("base64")}:`);
}
