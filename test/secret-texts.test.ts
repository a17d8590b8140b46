// One set of rules for every text of a secret or a key, whatever reads it: what a file, an editor or a form adds to a secret is refused
// with one reason; the byte order mark of a key file is not part of the key.
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { explainHmac } from "@countersign/cli/explain";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  generateKeyPair,
  writeKeyFiles,
} from "@countersign/devtools/sandbox";
import { importKeys, importVerificationKey, sign } from "@countersign/http-message-signatures";
import { directoryKeys } from "@countersign/http-signature-verify";
import { webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { signPayload, signPayloadHeaders, verifyPayload, webhookHmac } from "@countersign/webhook-hmac";
import { createServiceClient } from "countersign/client";
import { describe, expect, test } from "@jest/globals";

const bytes = Buffer.from("{}");
const username = "service";
const password = "test-password";
const secret = "test-secret";
const client = createServiceClient({ baseUrl: "https://service.example", apiKey: "k" });
const endpoint = {
  url: "https://platform.example/w",
  authUsername: username,
  authPassword: password,
  signatureSecret: secret,
};
const outgoing = { url: "https://platform.example/w", username, password, secret, body: bytes };

/** Whatever reads a secret, a password or a user name. */
const readers: readonly (readonly [string, (text: string) => unknown])[] = [
  ["webhookHmac", (text) => webhookHmac({ secret: text })],
  ["webhookHmac with a list", (text) => webhookHmac({ secrets: [secret, text] })],
  ["webhookHmac in base64", (text) => webhookHmac({ secret: text, scheme: "standard-webhooks" })],
  ["verifyPayload", (text) => verifyPayload(bytes, "x", [text])],
  ["signPayload", (text) => signPayload(bytes, text)],
  ["signPayloadHeaders", (text) => signPayloadHeaders(bytes, text, { scheme: "github" })],
  ["webhookBasicAuth's password", (text) => webhookBasicAuth({ username, password: text })],
  ["webhookBasicAuth's username", (text) => webhookBasicAuth({ username: text, password })],
  ["webhookBasicAuth's list", (text) => webhookBasicAuth({ credentials: [{ username, password: text }] })],
  ["the client's username", (text) => client.createWebhookEndpoint({ ...endpoint, authUsername: text })],
  ["the client's password", (text) => client.createWebhookEndpoint({ ...endpoint, authPassword: text })],
  ["the client's secret", (text) => client.createWebhookEndpoint({ ...endpoint, signatureSecret: text })],
  ["the sandbox's password", (text) => buildWebhookRequest({ ...outgoing, password: text })],
  ["the sandbox's secret", (text) => buildWebhookRequest({ ...outgoing, secret: text })],
  ["explainHmac", (text) => explainHmac({ rawHeaders: [] }, bytes, { secrets: [text] })],
];

describe("a secret", () => {
  test.each(
    readers.flatMap(([reader, read]) =>
      [
        ["a line feed at its end", "dGVzdA==\n", "ends with a line feed"],
        ["a line end of Windows", "dGVzdA==\r\n", "ends with a line feed"],
        ["a tab before it", "\tdGVzdA==", "holds a control character"],
        ["a byte order mark", "\uFEFFdGVzdA==", "begins with a byte order mark"],
        ["nothing but blanks", "  ", "is blank"],
      ].map(([what, text, reason]) => [reader, what, read, text, reason] as const),
    ),
  )("is refused by %s with %s", async (_reader, _what, read, text = "", reason = "") => {
    const error: unknown = await (async () => read(text))().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: expect.stringContaining(reason) });
    expect(String(error)).not.toContain("dGVzdA");
  });
});

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
const privatePem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const jwk = publicKey.export({ format: "jwk" });
const texts: readonly (readonly [name: string, text: string])[] = [
  ["a.pem", pem],
  ["a.pub", publicKey.export({ type: "spki", format: "der" }).toString("base64")],
  ["a.jwk", JSON.stringify(jwk)],
  ["a.jwks", JSON.stringify({ keys: [{ ...jwk, kid: "a" }] })],
  ["keys.json", JSON.stringify({ a: jwk })],
];

/** Runs `work` with an empty directory. */
async function inDirectory<Value>(work: (directory: string) => Value | Promise<Value>): Promise<Value> {
  const directory = mkdtempSync(path.join(tmpdir(), "countersign-keys-"));
  try {
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

describe("the text of a key", () => {
  test.each(texts)("of %s is read with a byte order mark, and not with two", async (name, text) => {
    const read = (marks: string): Promise<string[]> =>
      inDirectory(async (directory) => {
        writeFileSync(path.join(directory, name), marks + text);
        const store = directoryKeys(directory);
        try {
          await store.ready();
          return store.keys().map(({ keyid }) => keyid);
        } finally {
          store.close();
        }
      });
    expect(await read("\uFEFF")).toEqual(["a"]);
    expect([...importKeys(`\uFEFF${text}`, { keyid: "a" }).keys.keys()]).toEqual(["a"]);
    expect([...importKeys(Buffer.from(`\uFEFF${text}`), { keyid: "a" }).keys.keys()]).toEqual(["a"]);
    if (text.startsWith("{")) await expect(read("\uFEFF\uFEFF")).rejects.toThrow(/cannot be parsed/);
  });

  test.each([pem, JSON.stringify(jwk), JSON.stringify({ keys: [jwk] })])(
    "is read with a byte order mark as the value of a keyid: %j",
    (text) => {
      expect(importVerificationKey("a", `\uFEFF${text}`).publicKey.equals(publicKey)).toBe(true);
    },
  );

  test("of a private key is read with a byte order mark", () => {
    const marked = `\uFEFF${privatePem}`;
    const message = { method: "POST", target: "/pay", rawHeaders: [] };
    expect(sign(message, { key: marked, keyid: "a", components: ["@method"] })).toHaveProperty("signature");
    const body = { idempotency_key: "a" };
    const built = buildPayoutRequest({ url: "http://127.0.0.1/pay", body, privateKey: marked, keyid: "a" });
    expect(built).toHaveProperty("headers");
  });

  test("of keys.json is kept with a byte order mark when a key is added", async () => {
    const keys = await inDirectory((directory) => {
      const file = path.join(directory, "keys.json");
      writeFileSync(file, '\uFEFF{"old":"pem"}');
      writeKeyFiles(generateKeyPair({ keyid: "new" }), { directory });
      return JSON.parse(readFileSync(file, "utf8")) as unknown;
    });
    expect(keys).toEqual({ old: "pem", new: expect.any(String) });
  });
});
