import { compileAllowlist } from "@countersign/ip-allowlist";
import { serviceUrlFault } from "countersign/internal";
import { reasonOf, SettingError } from "./setting-error.ts";

const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Paths that the platform itself answers. */
const ownPaths: readonly string[] = [
  "/healthz",
  "/readyz",
  "/inspect/payouts",
  "/inspect/events",
  "/inspect/state",
  "/inspect/keys",
];

// The fields of the body that have a name in the interface.
const namedFields: readonly string[] = ["idempotency_key", "business_id", "beneficiary", "amount"];

// Number() would take "", " 1", "0x10" and "1e3".
export function parsePort(variable: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new SettingError(variable, "an integer from 0 to 65535", text);
  return port;
}

export function parseHost(variable: string, text: string): string {
  if (!/^[0-9A-Za-z.:_%-]{1,253}$/.test(text)) {
    throw new SettingError(variable, "a host name or an IP address without port or brackets", text);
  }
  return text;
}

// Nothing that a router or a proxy could read in two ways: no parameters, empty or dot segments, escapes, query.
const plainPath = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/;

export function parsePath(variable: string, text: string): string {
  if (!plainPath.test(text)) {
    throw new SettingError(
      variable,
      "a path such as /api/v1/transaction, of letters, digits and . _ ~ -",
      text,
    );
  }
  if (ownPaths.includes(text)) {
    throw new SettingError(variable, `a path other than ${ownPaths.join(", ")}`, text);
  }
  return text;
}

export function parsePathPrefix(variable: string, text: string): string {
  if (!plainPath.test(text)) {
    throw new SettingError(
      variable,
      "a path that begins with / and does not end with it, such as /payments",
      text,
    );
  }
  return text;
}

export function parseReferenceField(variable: string, text: string): string {
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(text)) {
    throw new SettingError(variable, "the name of a body field, of letters, digits, _ and -", text);
  }
  if (namedFields.includes(text)) {
    throw new SettingError(variable, `a field other than ${namedFields.join(", ")}`, text);
  }
  return text;
}

/** A comma list of addresses and CIDR ranges, with white space around the commas. Never empty, no empty entry. */
export function parseAddresses(variable: string, text: string): readonly string[] {
  const entries = text.split(",").map((entry) => entry.trim());
  try {
    // The allowlist's own reading of each entry: no host names, no "true", no hop counts, no host bits.
    compileAllowlist(entries);
  } catch (error) {
    throw new SettingError(
      variable,
      `a comma list of IP addresses or CIDR ranges (${reasonOf(error)})`,
      text,
    );
  }
  return entries;
}

// As createOutcomes() takes it. The value is not shown: such a URL may hold a token.
export function parseUrl(variable: string, text: string): URL {
  const url = serviceUrlFault(text, true) === undefined ? new URL(text) : undefined;
  if (url === undefined || url.port === "0") {
    const scheme = "http: or https: (http: to a loopback host alone)";
    const without = "without user name, password, fragment and white space";
    throw new SettingError(variable, `a URL such as https://host/path, ${scheme}, ${without}`);
  }
  return url;
}

// Not shown either.
export function parseApiKey(variable: string, text: string): string {
  if (!/^[\x21-\x7e]{1,256}$/.test(text)) {
    throw new SettingError(variable, "1 to 256 printable ASCII characters without spaces");
  }
  return text;
}

export function parseFlag(variable: string, text: string): boolean {
  if (text !== "0" && text !== "1") throw new SettingError(variable, "1 or 0", text);
  return text === "1";
}

export function parseLogLevel(variable: string, text: string): LogLevel {
  const level = logLevels.find((known) => known === text);
  if (level === undefined) throw new SettingError(variable, `one of ${logLevels.join(", ")}`, text);
  return level;
}
