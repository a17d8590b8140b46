import { writeFileSync } from "node:fs";
import path from "node:path";
import type { Environment } from "@countersign/example-settings";
import { generateKeyPair, sampleBusiness, writeKeyFiles } from "@countersign/devtools/sandbox";
import type { WebhookEndpoint } from "countersign/client";
import { generateEndpoint } from "countersign/webhooks";

type SigningKeyPair = ReturnType<typeof generateKeyPair>;

/** What the demo's platforms are started with. */
export interface DemoSetup {
  readonly env: Environment;
  readonly key: SigningKeyPair;
  /** What PAYOUT_KEYS names. */
  readonly keysFile: string;
  readonly logFile: string;
  readonly databaseFile: string;
  readonly webhook: WebhookRoute;
}

/** The webhook route of every platform of the demo. */
interface WebhookRoute extends Omit<WebhookEndpoint, "url"> {
  readonly path: string;
}

export const demoKeyid = "demo";

/**
 * Writes a fresh key pair and the sample business into `folder`, and makes up a webhook route. The database stays as it is: a key that was paid at an
 * earlier start is still paid.
 */
export function prepareDemo(folder: string): DemoSetup {
  const key = generateKeyPair({ keyid: demoKeyid });
  const { keysFile } = writeKeyFiles(key, { directory: folder, force: true });
  const businessesFile = path.join(folder, "businesses.json");
  const { businessId, iban } = sampleBusiness;
  writeFileSync(businessesFile, `${JSON.stringify([{ business_id: businessId, iban }], undefined, 2)}\n`);
  const logFile = path.join(folder, "platform.log");
  writeFileSync(logFile, "");
  const databaseFile = path.join(folder, "platform.db");
  const webhook = makeWebhookRoute();
  const env = {
    ...surroundings,
    ...webhookEnvironment(webhook),
    STORE_URL: `sqlite:${databaseFile}`,
    PAYOUT_KEYS: keysFile,
    BUSINESSES: businessesFile,
  };
  return { key, keysFile, logFile, databaseFile, webhook, env };
}

// The host belongs to each platform; everything else is made up once.
function makeWebhookRoute(): WebhookRoute {
  const {
    path: route,
    username,
    password,
    secret,
  } = generateEndpoint({ baseUrl: "https://platform.invalid" });
  return { path: route, authUsername: username, authPassword: password, signatureSecret: secret };
}

function webhookEnvironment({
  path: route,
  authUsername,
  authPassword,
  signatureSecret,
}: WebhookRoute): Environment {
  return {
    WEBHOOK_PATH: route,
    WEBHOOK_USERNAME: authUsername,
    WEBHOOK_PASSWORD: authPassword,
    WEBHOOK_SECRETS: signatureSecret,
    WEBHOOK_ALLOW_HTTP: "1",
  };
}

// Nothing of the contract is left to the surroundings: the cases expect these values.
const surroundings: Environment = {
  HOST: "127.0.0.1",
  PLATFORM_INSPECT: "1",
  INSPECTOR_PORT: undefined,
  PAYOUT_ALLOWED_IPS: undefined,
  PAYOUT_PATH: undefined,
  PATH_PREFIX: undefined,
  TRUST_PROXY: undefined,
  REFERENCE_FIELD: "reference",
  CONFIRMATION_URL: undefined,
  CONFIRMATION_API_KEY: undefined,
  DATABASE_URL: undefined,
  STORE_SCHEMA: undefined,
  KEY_PREFIX: undefined,
  TLS_CERT: undefined,
  TLS_KEY: undefined,
  LOG_LEVEL: undefined,
  // In production plain http is refused, on loopback too.
  NODE_ENV: undefined,
};
