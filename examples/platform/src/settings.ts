import type { VerificationKey } from "@countersign/http-message-signatures";
import { readBusinesses, readKeys, type Business } from "./setting-files.ts";
import {
  parseAddresses,
  parseFlag,
  parseHost,
  parseLogLevel,
  parsePath,
  parsePathPrefix,
  parsePort,
  parseReferenceField,
  parseStoreUrl,
  parseUrl,
  type LogLevel,
  type StoreLocation,
} from "./setting-values.ts";

/** The environment of the platform, checked. README.md lists the variables. */
export interface Settings {
  readonly port: number;
  readonly host: string;
  readonly store: StoreLocation;
  readonly payoutPath: string;
  readonly keys: ReadonlyMap<string, VerificationKey>;
  readonly allowedIps: readonly string[];
  readonly trustProxy: readonly string[];
  readonly pathPrefix: string | undefined;
  readonly referenceField: string | undefined;
  /** Undefined: beneficiaries are not checked. */
  readonly businesses: readonly Business[] | undefined;
  /** Undefined: outcomes are only logged. */
  readonly confirmationUrl: URL | undefined;
  readonly inspect: boolean;
  readonly logLevel: LogLevel;
}

/** Environment variables, as in process.env. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads and checks everything at once. Throws a SettingError on the first bad value; an empty value is bad, not unset. */
export function readSettings(env: Environment): Settings {
  return {
    port: parsePort("PORT", env["PORT"] ?? "3000"),
    host: parseHost("HOST", env["HOST"] ?? "127.0.0.1"),
    store: parseStoreUrl("STORE_URL", env["STORE_URL"] ?? "sqlite:./data/platform.db"),
    payoutPath: parsePath("PAYOUT_PATH", env["PAYOUT_PATH"] ?? "/api/v1/transaction"),
    allowedIps: parseAddresses("PAYOUT_ALLOWED_IPS", env["PAYOUT_ALLOWED_IPS"] ?? "127.0.0.1,::1"),
    trustProxy: optional("TRUST_PROXY", env, parseAddresses) ?? [],
    pathPrefix: optional("PATH_PREFIX", env, parsePathPrefix),
    referenceField: optional("REFERENCE_FIELD", env, parseReferenceField),
    confirmationUrl: optional("CONFIRMATION_URL", env, parseUrl),
    inspect: optional("PLATFORM_INSPECT", env, parseFlag) ?? false,
    logLevel: parseLogLevel("LOG_LEVEL", env["LOG_LEVEL"] ?? "info"),
    businesses: optional("BUSINESSES", env, readBusinesses),
    keys: readKeys("PAYOUT_KEYS", env["PAYOUT_KEYS"]),
  };
}

function optional<T>(
  variable: string,
  env: Environment,
  parse: (variable: string, text: string) => T,
): T | undefined {
  const text = env[variable];
  return text === undefined ? undefined : parse(variable, text);
}
