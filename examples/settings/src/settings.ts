import { optional, type Environment } from "./environment.ts";
import { SettingError } from "./setting-error.ts";
import { readBusinesses, type Business } from "./files.ts";
import { readKeySource, type KeySource } from "./keys.ts";
import { readStore, type StoreLocation } from "./store.ts";
import { readTls, type TlsSettings } from "./tls.ts";
import {
  parseAddresses,
  parseApiKey,
  parseFlag,
  parseHost,
  parseLogLevel,
  parsePath,
  parsePathPrefix,
  parsePort,
  parseReferenceField,
  parseUrl,
  type LogLevel,
} from "./values.ts";
import { readWebhook, type WebhookSettings } from "./webhook.ts";

/** The environment of the platform, checked. README.md lists the variables. */
export interface Settings {
  readonly port: number;
  readonly host: string;
  readonly store: StoreLocation;
  readonly payoutPath: string;
  /** To be opened by openKeys. */
  readonly keys: KeySource;
  readonly allowedIps: readonly string[];
  readonly trustProxy: readonly string[];
  readonly pathPrefix: string | undefined;
  readonly referenceField: string | undefined;
  /** Undefined: beneficiaries are not checked. */
  readonly businesses: readonly Business[] | undefined;
  /** Undefined: outcomes are only logged. */
  readonly confirmationUrl: URL | undefined;
  readonly confirmationApiKey: string | undefined;
  /** Undefined: there is no webhook route. */
  readonly webhook: WebhookSettings | undefined;
  /** Undefined: plain http. */
  readonly tls: TlsSettings | undefined;
  readonly inspect: boolean;
  /** Undefined: there is no inspector. */
  readonly inspectorPort: number | undefined;
  readonly logLevel: LogLevel;
}

/** Reads and checks everything at once. Throws a SettingError on the first bad value; an empty value is bad, not unset. */
export function readSettings(env: Environment): Settings {
  const payoutPath = parsePath("PAYOUT_PATH", env["PAYOUT_PATH"] ?? "/api/v1/transaction");
  const webhook = readWebhook(env);
  if (webhook?.path === payoutPath) {
    throw new SettingError("WEBHOOK_PATH", "a path other than that of PAYOUT_PATH");
  }
  return {
    port: parsePort("PORT", env["PORT"] ?? "3000"),
    host: parseHost("HOST", env["HOST"] ?? "127.0.0.1"),
    store: readStore(env),
    payoutPath,
    allowedIps: parseAddresses("PAYOUT_ALLOWED_IPS", env["PAYOUT_ALLOWED_IPS"] ?? "127.0.0.1,::1"),
    trustProxy: optional("TRUST_PROXY", env, parseAddresses) ?? [],
    pathPrefix: optional("PATH_PREFIX", env, parsePathPrefix),
    referenceField: optional("REFERENCE_FIELD", env, parseReferenceField),
    ...readConfirmation(env),
    webhook,
    tls: readTls(env),
    inspect: optional("PLATFORM_INSPECT", env, parseFlag) ?? false,
    inspectorPort: readInspectorPort(env),
    logLevel: parseLogLevel("LOG_LEVEL", env["LOG_LEVEL"] ?? "info"),
    businesses: optional("BUSINESSES", env, readBusinesses),
    keys: readKeySource(env),
  };
}

// The inspector shows each request to whoever has its address, and refuses itself in production.
function readInspectorPort(env: Environment): number | undefined {
  const port = optional("INSPECTOR_PORT", env, parsePort);
  if (port !== undefined && env["NODE_ENV"] === "production") {
    throw new SettingError("INSPECTOR_PORT", "no value, because NODE_ENV is production");
  }
  return port;
}

function readConfirmation(env: Environment): Pick<Settings, "confirmationUrl" | "confirmationApiKey"> {
  const confirmationUrl = optional("CONFIRMATION_URL", env, parseUrl);
  const confirmationApiKey = optional("CONFIRMATION_API_KEY", env, parseApiKey);
  if (confirmationUrl === undefined && confirmationApiKey !== undefined) {
    throw new SettingError("CONFIRMATION_API_KEY", "no value, because CONFIRMATION_URL is not set");
  }
  return { confirmationUrl, confirmationApiKey };
}

/** What is allowed but open, one line each, for the log. */
export function settingWarnings({ businesses, store, webhook, tls, trustProxy }: Settings): string[] {
  const warnings: string[] = [];
  if (businesses === undefined) {
    warnings.push("BUSINESSES is not set: payouts to unknown beneficiaries are accepted");
  }
  if (store.kind === "memory") warnings.push("STORE_URL is memory: a restart forgets which keys were paid");
  if (webhook === undefined) {
    const missing = "WEBHOOK_USERNAME, WEBHOOK_PASSWORD and WEBHOOK_SECRETS are not set";
    return [...warnings, `${missing}: there is no webhook route`];
  }
  if (webhook.isPathGenerated) {
    warnings.push("WEBHOOK_PATH is not set: the webhook URL changes at each start");
  }
  if (webhook.allowHttp) {
    warnings.push("WEBHOOK_ALLOW_HTTP is 1: webhooks are accepted over plain http");
  } else if (tls === undefined && trustProxy.length === 0) {
    const remedy = "set TLS_CERT and TLS_KEY, or TRUST_PROXY for the proxy that ends TLS";
    warnings.push(`every webhook will be refused as plain http: ${remedy}`);
  }
  return warnings;
}
