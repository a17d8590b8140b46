// npm run keys: a .env for development, with keys and secrets that nobody else has. The private key plays the lending service.
import { createPublicKey } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { generateKeyPair, writeKeyFiles } from "@countersign/devtools/sandbox";
import { generateEndpoint } from "countersign/webhooks";

if (existsSync(".env")) {
  console.error(".env is there already, and stays as it is. Remove it first for new keys.");
  process.exit(1);
}
const pair = generateKeyPair();
const { privateKeyFile } = writeKeyFiles(pair, { directory: "keys" });
const webhook = generateEndpoint({ baseUrl: "https://platform.example/webhooks" });
const { x = "" } = createPublicKey(pair.publicKeyPem).export({ format: "jwk" });
const values = new Map([
  ["KEYID", pair.keyid],
  ["PUBLIC_KEY", Buffer.from(x, "base64url").toString("base64")],
  ["WEBHOOK_PATH", webhook.path],
  ["WEBHOOK_USERNAME", webhook.username],
  ["WEBHOOK_PASSWORD", webhook.password],
  ["WEBHOOK_SECRET", webhook.secret],
]);
const example = readFileSync(".env.example", "utf8");
const env = example.replaceAll(/^([A-Z_]+)=$/gm, (line, name: string) => line + (values.get(name) ?? ""));
writeFileSync(".env", env, { mode: 0o600 });
console.log(`Test keys are in .env and ${privateKeyFile}; git ignores both. Next: npm run dev`);
