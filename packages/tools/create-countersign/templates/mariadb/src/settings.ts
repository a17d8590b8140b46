import { existsSync } from "node:fs";

// For development. What the environment has already, stays.
if (existsSync(".env")) process.loadEnvFile(".env");

const faults: string[] = [];
const proxies = /^(loopback|linklocal|uniquelocal|[\da-f]*[.:][\da-f.:]+(\/\d+)?|,\s*)+$/i;

/** The environment, checked; .env.example tells what each means. */
export const settings = {
  host: read("HOST", "an address of this machine", /./, "127.0.0.1"),
  port: Number(read("PORT", "a port such as 3000", /^\d{1,5}$/, "3000")),
  trustProxy: list(read("TRUST_PROXY", "the address of your proxy, or loopback", proxies)),

  keyid: read("KEYID", "the keyid that the service signs with", /^[\x21-\x7e]+$/),
  publicKey: read("PUBLIC_KEY", "an Ed25519 public key in base64 or PEM", /^(.{43}=|-----BEGIN [^]+)$/),
  allowIps: list(read("ALLOW_IPS", "the addresses that the service calls from", /^[\da-fA-F.:/, ]+$/)),

  webhookPath: read("WEBHOOK_PATH", "a path that nobody can guess", /^\/[\w/-]{16,}$/),
  webhookUsername: read("WEBHOOK_USERNAME", "a name without colons", /^[^:]+$/),
  webhookPassword: read("WEBHOOK_PASSWORD", "the password of the webhooks", /./),
  webhookSecret: read("WEBHOOK_SECRET", "the signature secret of the webhooks", /./),

  databaseUrl: read("DATABASE_URL", "a URL such as mysql://user@host/database", /^mysql:\/\/[^/]+\/./),
};

if (faults.length > 0) {
  console.error(`The platform does not start:\n  ${faults.join("\n  ")}`);
  console.error("npm run keys writes a .env for development; .env.example tells what each means.");
  process.exit(1);
}

// No value is shown: it may be a secret.
function read(name: string, expected: string, form: RegExp, fallback = ""): string {
  const text = process.env[name] || fallback;
  if (text === "") faults.push(`${name} is not set: expected ${expected}`);
  else if (!form.test(text)) faults.push(`${name} has another form: expected ${expected}`);
  return text;
}

function list(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}
